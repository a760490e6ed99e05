#include "compiler/codegen/x86/x86.h"

#include <memory>
#include <string>
#include <string_view>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/x86/flatten.h"
#include "compiler/codegen/x86/target.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"

namespace kiln::codegen {
namespace {

void InitializeBackend() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86Disassembler();
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeMachine(const drivers::Target& target) {
  auto backend = X86Backend(target);
  if (!backend.ok()) return backend.status();
  llvm::TargetOptions options;
  // FlattenObject places functions by their sections, and its result runs at any address.
  options.FunctionSections = true;
  std::unique_ptr<llvm::TargetMachine> machine((*backend)->createTargetMachine(
      X86Triple(), target.processor, X86Features(target), options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) return absl::InternalError("LLVM made no x86-64 target machine");
  return machine;
}

absl::Status Verify(const llvm::Module& module) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) {
    return absl::InternalError(absl::StrCat("invalid LLVM module: ", stream.str()));
  }
  return absl::OkStatus();
}

}  // namespace

llvm::Triple X86Triple() { return llvm::Triple("x86_64-unknown-linux-gnu"); }

absl::StatusOr<const llvm::Target*> X86Backend(const drivers::Target& target) {
  if (target.architecture != kX86Architecture) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the x86-64 code generator got a target of architecture \"", target.architecture, "\""));
  }
  static absl::once_flag once;
  absl::call_once(once, InitializeBackend);
  std::string problem;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(X86Triple(), problem);
  if (backend == nullptr)
    return absl::InternalError(absl::StrCat("LLVM has no x86-64 backend: ", problem));
  return backend;
}

std::string X86Features(const drivers::Target& target) {
  return target.features.empty() ? "-prefer-256-bit" : target.features + ",-prefer-256-bit";
}

absl::StatusOr<Blob> EmitBlob(llvm::Module& module, const drivers::Target& target,
                              const std::string& symbol) {
  auto machine = MakeMachine(target);
  if (!machine.ok()) return machine.status();
  module.setTargetTriple(X86Triple());
  module.setDataLayout((*machine)->createDataLayout());
  if (absl::Status status = Verify(module); !status.ok()) return status;

  llvm::SmallVector<char, 0> object;
  llvm::raw_svector_ostream stream(object);
  // No optimisation passes run before: O2 took three times as long for a matmul and made it no
  // faster.
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM's x86-64 backend writes no object files");
  }
  passes.run(module);
  return FlattenObject(std::string_view(object.data(), object.size()), symbol);
}

}  // namespace kiln::codegen
