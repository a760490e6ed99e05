// Kernels as OpenCL C: the functions of that architecture's row (codegen/machine_code.h).
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_KERNEL_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_KERNEL_H_

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "compiler/codegen/machine_code.h"

namespace kiln::codegen {

// Target::architecture.
inline constexpr std::string_view kOpenClArchitecture = "opencl-c";

bool IsOpenClSupported(const ir::Node* node, const drivers::Target& target);
// Returns UNIMPLEMENTED if the schedule needs more private memory than a work-item gets.
absl::StatusOr<Code> AssembleOpenCl(const kernel::Kernel& kernel,
                                    const schedule::LoopProgram& program,
                                    const drivers::Target& target);
// Returns the source.
absl::StatusOr<std::string> DisassembleOpenCl(const drivers::KernelImage& image,
                                              const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_KERNEL_H_
