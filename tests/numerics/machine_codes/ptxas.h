// NVIDIA's assembler, if it is installed: on the PATH or named by $KILN_PTXAS.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_PTXAS_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_PTXAS_H_

#include <string>

#include "tests/numerics/machine_codes/outside_tools.h"

namespace kiln::numerics {

// Returns its path; empty if there is none.
std::string Ptxas();

// Returns the output of ptxas -v. Thread-safe.
ToolSays Assemble(const std::string& ptx, const std::string& processor);

// Returns true if no register was spilled.
bool SaysNoSpills(const ToolSays& assembled);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_PTXAS_H_
