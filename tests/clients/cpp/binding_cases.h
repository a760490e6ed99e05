// One application or more of every op that the C++ client has a binding for.
#ifndef KILN_TESTS_CLIENTS_CPP_BINDING_CASES_H_
#define KILN_TESTS_CLIENTS_CPP_BINDING_CASES_H_

#include <vector>

#include "tests/numerics/cases/cases.h"

namespace kiln::bindings {

// The cases of tests/numerics, and some for ops and optional operands that those leave out.
std::vector<numerics::Case> Cases();

}  // namespace kiln::bindings

#endif  // KILN_TESTS_CLIENTS_CPP_BINDING_CASES_H_
