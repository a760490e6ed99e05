// Settings of a stand-in from the environment, for processes that do not know that they use one.
#ifndef KILN_TESTS_STAND_INS_ASKED_H_
#define KILN_TESTS_STAND_INS_ASKED_H_

#include <cstdlib>

namespace kiln::stand_ins {

// The number in the variable; `otherwise` if it is not set.
inline int Asked(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : std::atoi(text);
}

// KILN_STAND_IN_DEVICES, and whether devices can access each other's memory: KILN_STAND_IN_PEERS, 0
// or 1.
inline int DevicesAsked() { return Asked("KILN_STAND_IN_DEVICES", 1); }
inline bool PeersAsked() { return Asked("KILN_STAND_IN_PEERS", 1) != 0; }

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_ASKED_H_
