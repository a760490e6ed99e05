#include "compiler/codegen/spirv/spirv.h"

#include <memory>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "compiler/codegen/spirv/child_process.h"
#include "compiler/codegen/spirv/rewrite.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln::codegen {
namespace {

// Includes the version, which the backend takes only from here. Every Level Zero driver accepts
// 1.2.
constexpr char kTriple[] = "spirv64v1.2-unknown-unknown";
// The backend's layout for this triple; EmitSpirv compares it with the target's own.
constexpr char kLayout[] =
    "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-n8:16:32:"
    "64-"
    "G1";

void InitializeSpirvBackend() {
  LLVMInitializeSPIRVTargetInfo();
  LLVMInitializeSPIRVTarget();
  LLVMInitializeSPIRVTargetMC();
  LLVMInitializeSPIRVAsmPrinter();
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeSpirvMachine(
    const drivers::Target& target) {
  if (target.architecture != kSpirvArchitecture) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the SPIR-V code generator got a target of architecture \"", target.architecture, "\""));
  }
  static absl::once_flag once;
  absl::call_once(once, InitializeSpirvBackend);
  const llvm::Triple triple(kTriple);
  std::string problem;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(triple, problem);
  if (backend == nullptr)
    return absl::InternalError(absl::StrCat("LLVM has no SPIR-V backend: ", problem));
  // With any other level it writes invalid instructions for a truncation and a remainder.
  std::unique_ptr<llvm::TargetMachine> machine(
      backend->createTargetMachine(triple, "", "", llvm::TargetOptions(), std::nullopt,
                                   std::nullopt, llvm::CodeGenOptLevel::None));
  if (machine == nullptr) return absl::InternalError("LLVM made no SPIR-V target machine");
  return machine;
}

}  // namespace

void BeginSpirvModule(llvm::Module& module) {
  module.setTargetTriple(llvm::Triple(kTriple));
  module.setDataLayout(kLayout);
}

absl::StatusOr<std::string> EmitSpirv(llvm::Module& module, const drivers::Target& target) {
  auto machine = MakeSpirvMachine(target);
  if (!machine.ok()) return machine.status();
  if (module.getDataLayout() != (*machine)->createDataLayout())
    return absl::InternalError("the module was not made for SPIR-V");
  RewriteForSpirv(module);
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return absl::InternalError(absl::StrCat("invalid LLVM module: ", problem));
  if (absl::Status status = CheckSpirvSupported(module); !status.ok()) return status;
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  // Created here, so that all passes are registered before the process is copied. In the copy, the
  // registry's lock is then free unless another thread registers passes at that moment.
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM's SPIR-V backend writes no modules");
  }
  return InChildProcess([&] {
    passes.run(module);
    return std::string(bytes);
  });
}

}  // namespace kiln::codegen
