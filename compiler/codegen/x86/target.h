// The parts of LLVM's x86 backend that emission and disassembly share. Internal to codegen/x86.
#ifndef KILN_COMPILER_CODEGEN_X86_TARGET_H_
#define KILN_COMPILER_CODEGEN_X86_TARGET_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "drivers/interface/target.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

namespace kiln::codegen {

llvm::Triple X86Triple();

// Returns LLVM's backend, initialised on the first call. Returns INVALID_ARGUMENT if `target` is
// for another architecture.
absl::StatusOr<const llvm::Target*> X86Backend(const drivers::Target& target);

// Returns target.features, and the tuning that lets LLVM use 512-bit registers even for processor
// models for which it prefers not to.
std::string X86Features(const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_TARGET_H_
