// The way from a scheduled kernel to a loadable image.
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

// OK if every dtype and op of the kernel can be compiled for the target; UNIMPLEMENTED names what
// cannot, and the target.
absl::Status CheckSupported(const MachineCode& machine, const kernel::Kernel& kernel,
                            const drivers::Target& target);

// UNIMPLEMENTED as above; INVALID_ARGUMENT: the schedule does not fit the kernel; INTERNAL: the
// code could not be assembled, or the scheduled loops are not the kernel (proof::IsDisproof tells).
absl::StatusOr<drivers::KernelImage> CompileKernel(const MachineCode& machine,
                                                   const kernel::Kernel& kernel,
                                                   const schedule::Schedule& schedule,
                                                   const drivers::Target& target);

// The same for loops that were made and proved already; `kernel` is what they compute.
absl::StatusOr<drivers::KernelImage> CompileLoops(const MachineCode& machine,
                                                  const kernel::Kernel& kernel,
                                                  const schedule::LoopProgram& program,
                                                  const drivers::Target& target);

// The scheduled loops as OpenCL C, for people. (The schedule's own text is schedule::Print.)
absl::StatusOr<std::string> Source(const kernel::Kernel& kernel,
                                   const schedule::Schedule& schedule);

// "LLVM 22.1.8": part of the kernel cache's keys.
std::string LlvmVersion();

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_CODEGEN_H_
