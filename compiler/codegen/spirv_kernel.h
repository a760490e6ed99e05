// Kernels as SPIR-V: what the row of that architecture is made of (machine_code.h).
#ifndef KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_
#define KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::codegen {

// Some functions of float32 are computed in float64 on the way; a device without it has none of
// them.
bool IsSpirvSupported(const ir::Node* node, const drivers::Target& target);
// With an LLVMContext of its own for each call. UNIMPLEMENTED: the schedule keeps more for each
// task than a thread gets, or has vectors that SPIR-V has not.
absl::StatusOr<Code> AssembleSpirv(const kernel::Kernel& kernel,
                                   const schedule::LoopProgram& program,
                                   const drivers::Target& target);
// One line for each instruction, as in "%12 = OpFAdd %3 %10 %11".
absl::StatusOr<std::string> DisassembleSpirv(const drivers::KernelImage& image,
                                             const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_KERNEL_H_
