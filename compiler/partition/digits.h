// Which axes an index depends on, as digits of mixed-radix numbers: enough to see through reshape,
// permute and expand without symbolic arithmetic. What is not such a number (a window, a shifted
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

// In place of a loop: only the extent of such a digit is known.
inline constexpr int kUnknownLoop = -1;

// One digit of a loop's counter: (counter / stride) % extent.
struct Digit {
  int loop = 0;  // index into the loops that it is a digit of, or kUnknownLoop
  int64_t stride = 1;
  int64_t extent = 1;
  bool operator==(const Digit&) const = default;
};
// An index along one dimension as a mixed-radix number, most significant digit first. Empty: 0 (a
// dimension of size 1).
using Digits = std::vector<Digit>;

// The index along one dimension of what is read; nothing if it is not known to be digits.
using AxisIndex = std::optional<Digits>;

// Where a value is read.
struct Access {
  std::vector<AxisIndex> axes;  // one for each dimension
  // Only where some condition holds, such as a pad's or that a gathered index is in range.
  bool conditional = false;
  bool operator==(const Access&) const = default;
};

int64_t ExtentOf(const Digits& digits);
// Neighbours that are one digit of one loop are joined; digits of extent 1 vanish. Equal numbers
// are then equal lists.
Digits Normalized(Digits digits);
// The number's parts of the given extents (whose product is the number's extent), most significant
// first; nothing if an extent cuts through a digit.
std::optional<std::vector<Digits>> Split(const Digits& digits, absl::Span<const int64_t> extents);
// Both numbers cut where either has a digit's end: pairs of single digits with equal extents.
// Nothing if they do not fit.
std::optional<std::vector<std::pair<Digit, Digit>>> Align(const Digits& a, const Digits& b);
// `digits` over the axes of a value, rewritten over what each axis is itself. Nothing if an axis'
// digits are cut.
std::optional<Digits> Substitute(const Digits& digits, const std::vector<Digits>& axes);

// Axis i of `shape` is the whole loop i.
Access Identity(const ir::Shape& shape);
// Where operand 0 of a movement op is read when the op is read at `access`. `in_digits`: an index
// that counts down or begins later is an unknown digit, so that a reshape may make it one among
// known ones; else nothing is known of what it becomes a part of.
Access MoveThrough(const ir::Node* node, const Access& access, bool in_digits = false);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_DIGITS_H_
