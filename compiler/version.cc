#include "absl/strings/str_cat.h"
#include "compiler/codegen/x86.h"
#include "compiler/compiler.h"
#include "compiler_fingerprint.h"

namespace kiln::compiler {

std::string Version() {
  return absl::StrCat("kiln-compiler ", KILN_COMPILER_FINGERPRINT, ", ", codegen::LlvmVersion());
}

}  // namespace kiln::compiler
