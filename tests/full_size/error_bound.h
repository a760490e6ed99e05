// Bounds, element by element, on the difference between two correct computations of a kernel.
#ifndef KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_
#define KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// The largest magnitude of floating-point inputs in a comparison. Most are whole numbers: sums of
// their products are exact in any order, so that most contractions have a bound of zero.
inline constexpr int64_t kInputMagnitude = 2;

// A kernel that also writes, for each element of each output, a float64: a bound on the difference
// between its value and that of any other order of evaluation. The bounds are those of a running
// error analysis (Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, 3.3): each
// operation propagates the errors of its operands and adds a rounding, unless its operands are
// whole numbers small enough to be exact. A sum of n terms adds 2 + 2√n roundings of the sum of the
// terms' magnitudes (Higham and Mary, 2019: errors grow with √n with high probability). If a
// comparison or a truncation could have either result, the bound is the difference of the two
// results.
//
// A scatter has one store, so its output has no bounds.
struct BoundedKernel {
  kernel::Kernel kernel;
  std::vector<int> bound_of;   // by global buffer of the original: the buffer of its bounds, or -1
  std::vector<bool> is_exact;  // by global buffer of the original: all bounds are zero
  // A sum of many terms is not exact. Then inputs should not be whole: repeated roundings of a few
  // values have the same direction, and errors grow faster than √n.
  bool has_long_sum = false;
};
// Creates nodes in `context`, which must be the kernel's.
BoundedKernel WithErrorBounds(const kernel::Kernel& kernel, ir::Context& context,
                              bool whole_inputs);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_
