// NVIDIA's assembler, where it is installed: on the PATH or named by $KILN_PTXAS.
#ifndef KILN_TESTS_NUMERICS_PTXAS_H_
#define KILN_TESTS_NUMERICS_PTXAS_H_

#include <string>

#include "tests/numerics/outside_tools.h"

namespace kiln::numerics {

// The program. Empty: there is none.
std::string Ptxas();

// What ptxas -v says. Threads may call it at once.
ToolSays Assemble(const std::string& ptx, const std::string& processor);

// That no register of what was assembled is spilled.
bool SaysNoSpills(const ToolSays& assembled);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_PTXAS_H_
