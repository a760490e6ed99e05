// Turns a scheduled kernel into a loadable image.
#ifndef KILN_COMPILER_CODEGEN_CODEGEN_H_
#define KILN_COMPILER_CODEGEN_CODEGEN_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/kernel_image.h"
#include "drivers/interface/target.h"

namespace kiln::codegen {

// All functions are thread-safe. `machine` is the row of target.architecture.

// Returns OK if every dtype and op of the kernel can be compiled for the target. Returns
// UNIMPLEMENTED with the unsupported one and the target otherwise.
absl::Status CheckSupported(const MachineCode& machine, const kernel::Kernel& kernel,
                            const drivers::Target& target);

// Returns UNIMPLEMENTED as above; INVALID_ARGUMENT if the schedule does not fit the kernel;
// INTERNAL if the code could not be assembled, or the scheduled loops do not compute the kernel
// (see proof::IsDisproof).
absl::StatusOr<drivers::KernelImage> CompileKernel(const MachineCode& machine,
                                                   const kernel::Kernel& kernel,
                                                   const schedule::Schedule& schedule,
                                                   const drivers::Target& target);

// The same for loops that are made and proved already; they compute `kernel`.
absl::StatusOr<drivers::KernelImage> CompileLoops(const MachineCode& machine,
                                                  const kernel::Kernel& kernel,
                                                  const schedule::LoopProgram& program,
                                                  const drivers::Target& target);

// Returns the scheduled loops as OpenCL C, for display. (schedule::Print gives the schedule's
// text.)
absl::StatusOr<std::string> Source(const kernel::Kernel& kernel,
                                   const schedule::Schedule& schedule);

// Returns for example "LLVM 22.1.8"; part of the kernel cache's keys.
std::string LlvmVersion();

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_CODEGEN_H_
