// The parts of LLVM's AMDGPU backend that emission and disassembly share. Internal to
// codegen/amdgcn.
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_TARGET_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_TARGET_H_

#include <string>

#include "absl/status/statusor.h"
#include "drivers/interface/target.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln::codegen {

llvm::Triple AmdgcnTriple();

// Returns LLVM's backend, initialised on the first call. Returns INVALID_ARGUMENT if `target` is
// for another architecture.
absl::StatusOr<const llvm::Target*> AmdgcnBackend(const drivers::Target& target);

// Returns target.features in LLVM's form, with the size of subgroups.
std::string AmdgcnFeatures(const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_TARGET_H_
