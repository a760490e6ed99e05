// Numbers that follow from the variables, but not as affine functions: products, such as the number
// of elements of a tensor with two variable dimensions, and quotients, such as the number of
// positions of a window that moves by two. A general graph treats them as further variables.
#ifndef KILN_COMPILER_VARIABLES_DERIVED_H_
#define KILN_COMPILER_VARIABLES_DERIVED_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "compiler/graph/variable.h"

namespace kiln::variables {

struct Derived {
  enum class Kind : uint8_t {
    kProduct,   // left * right
    kQuotient,  // (left + shift) / divisor, rounded down
  };
  Kind kind = Kind::kProduct;
  int left = 0;   // the number of a variable
  int right = 0;  // of a product; may be the same
  int64_t shift = 0;
  int64_t divisor = 1;  // positive; 0 <= shift < divisor
  bool operator==(const Derived&) const = default;
};

// The values of the variables, followed by those of the derived ones. No product overflows.
std::vector<int64_t> WithDerived(absl::Span<const int64_t> values,
                                 absl::Span<const Derived> derived);
// The variables, followed by the derived ones with their own bounds.
std::vector<graph::Variable> WithDerived(absl::Span<const graph::Variable> variables,
                                         absl::Span<const Derived> derived);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_DERIVED_H_
