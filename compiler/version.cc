#include "absl/strings/str_cat.h"
#include "compiler/codegen/codegen.h"
#include "compiler/compiler.h"
#include "compiler_fingerprint.h"

namespace kiln::compiler {

std::string Version() {
  // The fingerprint is that of the compiler's sources, so kernels cached by another build are not
  // used.
  return absl::StrCat("kiln-compiler ", KILN_COMPILER_FINGERPRINT, ", ", codegen::LlvmVersion());
}

}  // namespace kiln::compiler
