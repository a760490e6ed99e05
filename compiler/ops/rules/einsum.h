// The equations of einsum: each letter names a dimension of the operands. Internal to compiler/ops.
//
// As NumPy's: operands' letters separated by commas, "->" and the result's letters. Without "->"
// the result has the letters that occur once, in alphabetical order. "..." means the dimensions
// without a letter, which broadcast; they come first in an implicit result. A letter may be
// repeated in an operand, for its diagonal; the sizes must be equal. Dimensions of one letter in
// several operands must have one size, or 1.
#ifndef KILN_COMPILER_OPS_RULES_EINSUM_H_
#define KILN_COMPILER_OPS_RULES_EINSUM_H_

#include <map>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::ops {

// A dimension's name: a letter, or a negative number for a dimension of the ellipsis, counted from
// its end.
using Label = int;

struct EinsumEquation {
  std::vector<std::vector<Label>> operands;  // a label for each dimension
  std::vector<Label> result;
  std::map<Label, int64_t> sizes;

  ir::Shape ResultShape() const;
};

inline constexpr size_t kOperandsMax = 12;  // planning 3^12 splits takes milliseconds

// INVALID_ARGUMENT: there are too many operands, or the equation does not parse or does not match
// the shapes; the message quotes it.
absl::StatusOr<EinsumEquation> ParseEinsum(std::string_view equation,
                                           absl::Span<const ir::Shape> shapes);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_RULES_EINSUM_H_
