// NVIDIA's assembler, where it is installed: on the PATH or named by $KILN_PTXAS.
#ifndef KILN_TESTS_NUMERICS_PTXAS_H_
#define KILN_TESTS_NUMERICS_PTXAS_H_

#include <string>

namespace kiln::numerics {

// The program. Empty: there is none.
std::string Ptxas();

struct Assembled {
  int status = 0;    // of the program
  std::string said;  // by ptxas -v
};
// Threads may call it at once.
Assembled Assemble(const std::string& ptx, const std::string& processor);

// That no register of what was assembled is spilled.
bool SaysNoSpills(const Assembled& assembled);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_PTXAS_H_
