// The axes that an index depends on, as digits of mixed-radix numbers: enough to analyse reshape,
// permute and expand without symbolic arithmetic. An index of another form (a window, a shifted
// slice) is unknown.
#ifndef KILN_COMPILER_PARTITION_DIGITS_H_
#define KILN_COMPILER_PARTITION_DIGITS_H_

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"

namespace kiln::partition {

// Used instead of a loop: only the extent of such a digit is known.
inline constexpr int kUnknownLoop = -1;

// One digit of a loop's counter: (counter / stride) % extent.
struct Digit {
  int loop = 0;  // number of the loop, or kUnknownLoop
  int64_t stride = 1;
  int64_t extent = 1;
  bool operator==(const Digit&) const = default;
};
// An index along one dimension as a mixed-radix number, most significant digit first. Empty: 0 (a
// dimension of size 1).
using Digits = std::vector<Digit>;

// The index along one dimension of a read; nothing if it is not known to be digits.
using AxisIndex = std::optional<Digits>;

// The index at which a value is read.
struct Access {
  std::vector<AxisIndex> axes;  // one for each dimension
  // True if the read happens only under a condition, such as a pad's, or that a gathered index is
  // in range.
  bool conditional = false;
  bool operator==(const Access&) const = default;
};

int64_t ExtentOf(const Digits& digits);
// Joins adjacent digits that are one digit of one loop, and removes digits of extent 1. Then equal
// numbers are equal lists.
Digits Normalized(Digits digits);
// Splits the number into parts of the given extents (whose product is the number's extent), most
// significant first; nothing if a boundary is inside a digit.
std::optional<std::vector<Digits>> Split(const Digits& digits, absl::Span<const int64_t> extents);
// Splits both numbers at all digit boundaries of either: pairs of single digits with equal extents.
// Nothing if they do not match.
std::optional<std::vector<std::pair<Digit, Digit>>> Align(const Digits& a, const Digits& b);
// Rewrites `digits` over the axes of a value to digits of the axes' own loops. Nothing if this cuts
// an axis's digits.
std::optional<Digits> Substitute(const Digits& digits, const std::vector<Digits>& axes);

// Returns the access in which axis i of `shape` is the whole loop i.
Access Identity(const ir::Shape& shape);
// Returns the access to operand 0 of a movement op when the op is read at `access`. `in_digits`: an
// index that counts down or is shifted becomes an unknown digit, so that a reshape may combine it
// with known ones; otherwise everything that it becomes part of is unknown.
Access MoveThrough(const ir::Node* node, const Access& access, bool in_digits = false);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_DIGITS_H_
