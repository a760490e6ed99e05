#include "compiler/codegen/nvptx/ptx.h"

#include <memory>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln::codegen {
namespace {

void InitializePtxBackend() {
  LLVMInitializeNVPTXTargetInfo();
  LLVMInitializeNVPTXTarget();
  LLVMInitializeNVPTXTargetMC();
  LLVMInitializeNVPTXAsmPrinter();
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakePtxMachine(const drivers::Target& target) {
  if (target.architecture != kPtxArchitecture) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the PTX code generator got a target of architecture \"", target.architecture, "\""));
  }
  static absl::once_flag once;
  absl::call_once(once, InitializePtxBackend);
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string problem;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (backend == nullptr)
    return absl::InternalError(absl::StrCat("LLVM has no NVPTX backend: ", problem));
  llvm::TargetOptions options;
  // Results must be the same as on every other device.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine(backend->createTargetMachine(
      triple, target.processor, target.features, options, llvm::Reloc::PIC_, std::nullopt,
      llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) return absl::InternalError("LLVM made no NVPTX target machine");
  if (!machine->getMCSubtargetInfo()->isCPUStringValid(target.processor)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown processor for PTX \"", target.processor,
                                                   "\"; use one such as \"sm_90\""));
  }
  return machine;
}

}  // namespace

absl::StatusOr<std::string> EmitPtx(llvm::Module& module, const drivers::Target& target) {
  auto machine = MakePtxMachine(target);
  if (!machine.ok()) return machine.status();
  module.setTargetTriple((*machine)->getTargetTriple());
  module.setDataLayout((*machine)->createDataLayout());
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return absl::InternalError(absl::StrCat("invalid LLVM module: ", problem));
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr,
                                      llvm::CodeGenFileType::AssemblyFile)) {
    return absl::InternalError("LLVM's NVPTX backend writes no text");
  }
  passes.run(module);
  return std::string(text);
}

}  // namespace kiln::codegen
