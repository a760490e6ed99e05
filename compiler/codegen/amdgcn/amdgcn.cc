#include "compiler/codegen/amdgcn/amdgcn.h"

#include <memory>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "compiler/codegen/amdgcn/link.h"
#include "compiler/codegen/amdgcn/target.h"
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

namespace kiln::codegen {
namespace {

// Version of the code object convention: the lowest that LLVM 22 writes for all processors. ROCm
// 5.4 and newer load it.
constexpr unsigned kCodeObjectVersion = 500;

void InitializeAmdgcnBackend() {
  LLVMInitializeAMDGPUTargetInfo();
  LLVMInitializeAMDGPUTarget();
  LLVMInitializeAMDGPUTargetMC();
  LLVMInitializeAMDGPUAsmPrinter();
  LLVMInitializeAMDGPUDisassembler();
}

absl::Status CheckProcessor(const llvm::MCSubtargetInfo& subtarget, const drivers::Target& target) {
  if (!subtarget.isCPUStringValid(target.processor)) {
    return absl::InvalidArgumentError(absl::StrCat("unknown processor for code objects \"",
                                                   target.processor,
                                                   "\"; use one such as \"gfx90a\""));
  }
  const int wave = target.limits.threads_per_subgroup;
  // Processors before gfx10 have only subgroups of 64.
  const bool knows = wave == 64 || (wave == 32 && !absl::StartsWith(target.processor, "gfx9"));
  if (!knows) {
    return absl::InvalidArgumentError(
        absl::StrCat(target.processor, " has no subgroups of ", wave, " threads"));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeAmdgcnMachine(
    const drivers::Target& target) {
  auto backend = AmdgcnBackend(target);
  if (!backend.ok()) return backend.status();
  llvm::TargetOptions options;
  // Results must be the same as on every other device.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  std::unique_ptr<llvm::TargetMachine> machine((*backend)->createTargetMachine(
      AmdgcnTriple(), target.processor, AmdgcnFeatures(target), options, llvm::Reloc::PIC_,
      std::nullopt, llvm::CodeGenOptLevel::Default));
  if (machine == nullptr) return absl::InternalError("LLVM made no AMDGPU target machine");
  absl::Status status = CheckProcessor(*machine->getMCSubtargetInfo(), target);
  if (!status.ok()) return status;
  return machine;
}

}  // namespace

llvm::Triple AmdgcnTriple() { return llvm::Triple("amdgcn-amd-amdhsa"); }

absl::StatusOr<const llvm::Target*> AmdgcnBackend(const drivers::Target& target) {
  if (target.architecture != kAmdgcnArchitecture) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the AMDGPU code generator got a target of architecture \"", target.architecture, "\""));
  }
  static absl::once_flag once;
  absl::call_once(once, InitializeAmdgcnBackend);
  std::string problem;
  const llvm::Target* backend = llvm::TargetRegistry::lookupTarget(AmdgcnTriple(), problem);
  if (backend == nullptr)
    return absl::InternalError(absl::StrCat("LLVM has no AMDGPU backend: ", problem));
  return backend;
}

std::string AmdgcnFeatures(const drivers::Target& target) {
  std::vector<std::string> features;
  for (absl::string_view feature : absl::StrSplit(target.features, ',', absl::SkipEmpty())) {
    if (std::string(feature.substr(1)) != kHostTwinFeature) features.emplace_back(feature);
  }
  const int wave = target.limits.threads_per_subgroup;
  features.push_back(absl::StrCat("+wavefrontsize", wave));
  features.push_back(absl::StrCat("-wavefrontsize", wave == 64 ? 32 : 64));
  return absl::StrJoin(features, ",");
}

void PrepareAmdgcnModule(llvm::Module& module) {
  module.setTargetTriple(AmdgcnTriple());
  module.setDataLayout(AmdgcnTriple().computeDataLayout());
  module.addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", kCodeObjectVersion);
}

absl::StatusOr<std::string> EmitCodeObject(llvm::Module& module, const drivers::Target& target) {
  auto machine = MakeAmdgcnMachine(target);
  if (!machine.ok()) return machine.status();
  std::string problem;
  llvm::raw_string_ostream problems(problem);
  if (llvm::verifyModule(module, &problems))
    return absl::InternalError(absl::StrCat("invalid LLVM module: ", problem));
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager passes;
  if ((*machine)->addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::ObjectFile)) {
    return absl::InternalError("LLVM's AMDGPU backend writes no object files");
  }
  passes.run(module);
  return LinkCodeObject(std::string_view(object.data(), object.size()));
}

}  // namespace kiln::codegen
