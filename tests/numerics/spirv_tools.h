// Tools that read SPIR-V, where they are installed: spirv-val of the SPIRV-Tools (Debian's package
// spirv-tools) and ocloc, Intel's compiler for its GPUs (intel-opencl-icd).
#ifndef KILN_TESTS_NUMERICS_SPIRV_TOOLS_H_
#define KILN_TESTS_NUMERICS_SPIRV_TOOLS_H_

#include <string>

namespace kiln::numerics {

// The path of a program on $PATH; empty if there is none.
std::string FindProgram(const std::string& name);

struct Checked {
  int status = 0;
  std::string said;
};
// What spirv-val says of a module, for any environment: those of OpenCL 2.1 and 2.2 refuse float16.
Checked Validate(const std::string& spirv);
// What ocloc says when it compiles a module for a GPU, "dg2" or "pvc".
Checked CompileOffline(const std::string& spirv, const std::string& device);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_SPIRV_TOOLS_H_
