// Kernels written as LLVM IR text, for tests that need machine code with a known effect.
#ifndef KILN_COMPILER_CODEGEN_TESTING_IR_TEXT_H_
#define KILN_COMPILER_CODEGEN_TESTING_IR_TEXT_H_

#include <string>

#include "absl/status/statusor.h"
#include "compiler/codegen/x86/x86.h"
#include "drivers/interface/target.h"

namespace kiln::codegen {

// Like EmitBlob. Returns INVALID_ARGUMENT if the text is not LLVM IR; the message has the line.
absl::StatusOr<Blob> EmitBlobFromText(const std::string& text, const drivers::Target& target,
                                      const std::string& symbol);

// Like EmitSpirv, with the same error. The text has OpenCL's address spaces, and functions of
// spir_kernel.
absl::StatusOr<std::string> EmitSpirvFromText(const std::string& text,
                                              const drivers::Target& target);
// Returns the code object of a kernel for AMD's GPUs, "kernel", with its twin for the host.
absl::StatusOr<std::string> EmitCodeObjectFromText(const std::string& text,
                                                   const drivers::Target& target);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_TESTING_IR_TEXT_H_
