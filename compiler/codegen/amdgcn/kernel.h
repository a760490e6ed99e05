// Kernels as code objects for AMD's GPUs: the functions of that architecture's row
// (codegen/machine_code.h).
#ifndef KILN_COMPILER_CODEGEN_AMDGCN_KERNEL_H_
#define KILN_COMPILER_CODEGEN_AMDGCN_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::codegen {

bool IsAmdgcnSupported(const ir::Node* node, const drivers::Target& target);
// Uses a new LLVMContext for each call. Returns UNIMPLEMENTED if the schedule needs more scratch
// for each task than a thread gets.
absl::StatusOr<Code> AssembleAmdgcn(const kernel::Kernel& kernel,
                                    const schedule::LoopProgram& program,
                                    const drivers::Target& target);
absl::StatusOr<std::string> DisassembleAmdgcn(const drivers::KernelImage& image,
                                              const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_AMDGCN_KERNEL_H_
