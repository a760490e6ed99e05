// LLVM's linker initialises all backends that LLVM was built with. It needs none of them to link
// code objects, so the initialisers of backends that Kiln does not have are empty here.
#define KILN_NO_TARGET(name)                 \
  void LLVMInitialize##name##TargetInfo() {} \
  void LLVMInitialize##name##Target() {}     \
  void LLVMInitialize##name##TargetMC() {}   \
  void LLVMInitialize##name##AsmParser() {}  \
  void LLVMInitialize##name##AsmPrinter() {} \
  static_assert(true)

extern "C" {

KILN_NO_TARGET(AArch64);
KILN_NO_TARGET(ARM);
KILN_NO_TARGET(AVR);
KILN_NO_TARGET(BPF);
KILN_NO_TARGET(Hexagon);
KILN_NO_TARGET(Lanai);
KILN_NO_TARGET(LoongArch);
KILN_NO_TARGET(M68k);
KILN_NO_TARGET(MSP430);
KILN_NO_TARGET(Mips);
KILN_NO_TARGET(PowerPC);
KILN_NO_TARGET(RISCV);
KILN_NO_TARGET(Sparc);
KILN_NO_TARGET(SystemZ);
KILN_NO_TARGET(VE);
KILN_NO_TARGET(WebAssembly);
KILN_NO_TARGET(XCore);
KILN_NO_TARGET(Xtensa);
void LLVMInitializeAMDGPUAsmParser() {}
void LLVMInitializeX86AsmParser() {}

}  // extern "C"

#undef KILN_NO_TARGET
