// SPIR-V as text.
#ifndef KILN_COMPILER_CODEGEN_SPIRV_DISASSEMBLE_H_
#define KILN_COMPILER_CODEGEN_SPIRV_DISASSEMBLE_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace kiln::codegen {

// Returns one line for each instruction: "%12 = OpFAdd %3 %10 %11", where %3 is the result's type
// and numbers are those of the module. Returns INVALID_ARGUMENT if `module` is not SPIR-V of this
// byte order, or is truncated.
absl::StatusOr<std::string> DisassembleSpirvWords(absl::string_view module);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_SPIRV_DISASSEMBLE_H_
