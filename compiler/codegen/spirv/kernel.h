// Kernels as SPIR-V: the functions of that architecture's row (codegen/machine_code.h).
#ifndef KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_
#define KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::codegen {

// Some functions of float32 use float64 internally; devices without it do not support them.
bool IsSpirvSupported(const ir::Node* node, const drivers::Target& target);
// Uses a new LLVMContext for each call. Returns UNIMPLEMENTED if the schedule needs more scratch
// for each task than a thread gets, or vectors that SPIR-V does not have.
absl::StatusOr<Code> AssembleSpirv(const kernel::Kernel& kernel,
                                   const schedule::LoopProgram& program,
                                   const drivers::Target& target);
// Returns one line for each instruction, as in "%12 = OpFAdd %3 %10 %11".
absl::StatusOr<std::string> DisassembleSpirv(const drivers::KernelImage& image,
                                             const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_
