// The pieces of LLVM's x86 backend that emission and disassembly share. Only x86*.cc may include
// this.
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

// LLVM's backend, initialised on the first call. INVALID_ARGUMENT if `target` is for another
// architecture.
absl::StatusOr<const llvm::Target*> X86Backend(const drivers::Target& target);

// target.features, and the tuning that lets LLVM use 512-bit registers where the processor's model
// would rather not.
std::string X86Features(const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_TARGET_H_
