// Cases with sums so long that a machine with many units splits them over blocks, and that are too
// large for the table of cases: matrix products, convolutions, reductions of each kind, with sizes
// that divide evenly and others.
#ifndef KILN_TESTS_NUMERICS_CASES_SPLIT_CASES_H_
#define KILN_TESTS_NUMERICS_CASES_SPLIT_CASES_H_

#include <vector>

#include "tests/numerics/cases/cases.h"

namespace kiln::numerics {

// Returns the cases. On SomeGpu, at least one reduction of each, or of its gradient, is split.
const std::vector<Case>& SplitCases();

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_CASES_SPLIT_CASES_H_
