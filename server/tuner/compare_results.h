// Compares the results of two schedules of one kernel.
#ifndef KILN_SERVER_TUNER_COMPARE_RESULTS_H_
#define KILN_SERVER_TUNER_COMPARE_RESULTS_H_

#include <map>
#include <vector>

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Returns the relative difference up to which floats of two correct schedules are equal. It depends
// on the dtypes in which the kernel computes, and grows with the roots of the numbers of terms of
// its stages' sums: with high probability errors do (Higham and Mary, 2019).
double ToleranceOf(const kernel::Kernel& kernel);

// How much floats change if inputs do, by buffer and element.
using Spread = std::map<int, std::vector<double>>;
// Enlarges the spread to the differences of these results.
void AddSpread(const kernel::Kernel& kernel, const Outputs& want, const Outputs& perturbed,
               Spread* spread);

// Returns DATA_LOSS with the first difference. Integers must be equal; NaN equals NaN, and an
// infinity only itself. Other floats may differ by the tolerance, relative to the element or to the
// root mean square of its buffer, whichever is larger: a sum that cancels out has the error of its
// terms. Besides, they may differ by a few times their spread, or the root mean square of the
// buffer's spreads. If inputs were perturbed by the tolerance, this accepts results that are right
// for inputs so near, as a backward error analysis does: of kernels that enlarge small differences,
// no more can be said. Requires: both have the kernel's outputs.
absl::Status CompareResults(const kernel::Kernel& kernel, const Outputs& want, const Outputs& got,
                            double tolerance, const Spread& spread = {});

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_COMPARE_RESULTS_H_
