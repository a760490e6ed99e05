// LLVM's own tools on code objects.
#ifndef KILN_TESTS_NUMERICS_LLVM_TOOLS_H_
#define KILN_TESTS_NUMERICS_LLVM_TOOLS_H_

#include <string>

namespace kiln::numerics {

// Whether LLVM's folder has llvm-readelf and llvm-objdump.
bool HasLlvmTools();

struct ToolSays {
  int status = 0;
  std::string text;
};
// `command` with the name of a file of these contents behind it.
ToolSays RunLlvmTool(const std::string& command, const std::string& contents);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_LLVM_TOOLS_H_
