// Which floats of a kernel are whole numbers that no rounding touches.
#ifndef KILN_TESTS_FULL_SIZE_WHOLE_H_
#define KILN_TESTS_FULL_SIZE_WHOLE_H_

#include <limits>

#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::full_size {

// The largest relative error of rounding to the dtype.
double RoundingTo(ir::DType dtype);
// Whether all whole numbers of at most this magnitude are numbers of the dtype.
bool HoldsWhole(double magnitude, ir::DType dtype);

// What is known of a number's size.
struct Size {
  bool whole = false;  // a whole number, computed without rounding
  double magnitude = std::numeric_limits<double>::infinity();  // at most
};
// Of a float that is no load and no reduction.
Size SizeOfFloat(const ir::Node* node, absl::Span<const Size> operands);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_WHOLE_H_
