// How far two correct ways to compute a kernel may be apart, element by element.
#ifndef KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_
#define KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// Floating-point inputs of a comparison are of at most this magnitude. Most are whole numbers: sums
// of their products are exact in any order, so that most contractions have a bound of zero.
inline constexpr int64_t kInputMagnitude = 2;

// The kernel, writing beside each output a float64 for each element: a bound on the distance
// between its value and that of any other order of evaluation. The bounds are those of a running
// error analysis (Wilkinson; Higham, Accuracy and Stability of Numerical Algorithms, 3.3): each
// operation passes on the errors of its operands and adds a rounding, unless its operands are whole
// numbers small enough to be exact. A sum of n terms adds 2 + 2√n roundings of the sum of the
// terms' magnitudes (Higham and Mary, 2019: errors grow with √n with high probability). Where a
// comparison or a truncation could come out either way, the bound is the distance of the two
// results.
//
// A scatter has one store, so its output has no bounds.
struct BoundedKernel {
  kernel::Kernel kernel;
  std::vector<int> bound_of;   // by global buffer of the original: the buffer of its bounds, or -1
  std::vector<bool> is_exact;  // by global buffer of the original: all bounds are zero
  // Some sum of many terms is not exact. Then inputs should not be whole: roundings of a few values
  // that come again and again have one direction, and errors grow faster than √n.
  bool has_long_sum = false;
};
// Nodes are made in `context`, which is the kernel's.
BoundedKernel WithErrorBounds(const kernel::Kernel& kernel, ir::Context& context,
                              bool whole_inputs);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_ERROR_BOUND_H_
