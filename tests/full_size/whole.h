// Determines which floats of a kernel are whole numbers that are never rounded.
#ifndef KILN_TESTS_FULL_SIZE_WHOLE_H_
#define KILN_TESTS_FULL_SIZE_WHOLE_H_

#include <limits>

#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::full_size {

// Returns the largest relative error of rounding to the dtype.
double RoundingTo(ir::DType dtype);
// Returns true if the dtype represents all whole numbers up to this magnitude.
bool HoldsWhole(double magnitude, ir::DType dtype);

// Known properties of a number.
struct Size {
  bool whole = false;  // a whole number, computed without rounding
  double magnitude = std::numeric_limits<double>::infinity();  // upper bound
};
// Returns the size of a float that is neither a load nor a reduction.
Size SizeOfFloat(const ir::Node* node, absl::Span<const Size> operands);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_WHOLE_H_
