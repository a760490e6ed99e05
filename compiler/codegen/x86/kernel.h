// Kernels as x86-64 machine code: the functions of that architecture's row
// (codegen/machine_code.h).
#ifndef KILN_COMPILER_CODEGEN_X86_KERNEL_H_
#define KILN_COMPILER_CODEGEN_X86_KERNEL_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::codegen {

bool IsX86Supported(const ir::Node* node, const drivers::Target& target);
// Uses a new LLVMContext for each call.
absl::StatusOr<Code> AssembleX86(const kernel::Kernel& kernel, const schedule::LoopProgram& program,
                                 const drivers::Target& target);
absl::StatusOr<std::string> DisassembleX86(const drivers::KernelImage& image,
                                           const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_X86_KERNEL_H_
