// Index expressions as sums: constant + Σ coefficient * atom, where an atom is a range or any node
// that is not a sum. Plain arithmetic on sums and intervals; needs no context.
#ifndef KILN_COMPILER_KERNEL_INDEX_SUM_H_
#define KILN_COMPILER_KERNEL_INDEX_SUM_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "compiler/ir/node.h"

namespace kiln::kernel {

// Includes both ends. Ends at or beyond ±kUnbounded are unknown. kUnbounded is a quarter of int64's
// range, so that ends can be negated, moved and added without overflow.
struct Interval {
  int64_t low = 0;
  int64_t high = 0;
  bool operator==(const Interval&) const = default;
};
inline constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max() / 4;

struct Term {
  const ir::Node* atom = nullptr;
  int64_t coefficient = 0;
  bool operator==(const Term&) const = default;
};
// Atoms are distinct and ordered by node id, coefficients not zero.
struct Sum {
  int64_t constant = 0;
  std::vector<Term> terms;
  bool operator==(const Sum&) const = default;

  // Checks the order of the atoms and that no coefficient is zero.
  void Validate() const;
  // Returns 0 if `atom` is not a term.
  int64_t Coefficient(const ir::Node* atom) const;
};

// Returns an int64 node as a sum. Always succeeds: at worst the node itself is the only term.
// Numbers wrap, as they do when the sum is computed.
Sum SumOf(const ir::Node* node);

// Appends the maximal int64 sums inside `root`: every Sum from which an index, a condition or a
// nested atom is made.
void CollectSums(const ir::Node* root, std::vector<Sum>* out);

bool DependsOn(const ir::Node* root, const ir::Node* range);

inline int64_t WrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// Returns the absolute value.
inline uint64_t Magnitude(int64_t a) {
  return a < 0 ? -static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
}
inline bool IsSmall(int64_t a) { return a > -kUnbounded && a < kUnbounded; }
inline int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
inline int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }
inline constexpr Interval kAnything = {-kUnbounded, kUnbounded};
inline bool IsKnown(const Interval& i) { return i.low > -kUnbounded && i.high < kUnbounded; }
// Returns whether a node is index arithmetic: an int64.
inline bool IsIndex(const ir::Node* node) { return node->dtype() == ir::DType::kInt64; }
// Returns the constant that an idiv or mod divides by; 0 if there is none or it is not positive.
int64_t Divisor(const ir::Node* node);

// Returns a + factor * b. Numbers wrap, as the sum's value does. `unordered`: b's terms may be in
// any order.
Sum AddScaled(const Sum& a, Sum b, int64_t factor, bool unordered = false);
// multiple * divisor + rest, where the rest has the terms that the divisor does not divide, and a
// constant in [0, divisor).
struct Division {
  Sum multiple;
  Sum rest;
};
// Requires: `divisor` >= 1.
Division SplitMultiple(const Sum& sum, int64_t divisor);

// Saturate at ±kUnbounded.
Interval AddIntervals(const Interval& a, const Interval& b);
Interval Scale(const Interval& interval, int64_t factor);
// For sums: if an end is unknown, the sum can wrap, and the result is unknown.
Interval AddUnlessWrapped(const Interval& a, const Interval& b);
// Ends that are unknown stay unknown.
Interval Shift(const Interval& interval, int64_t by);
// Returns whether the same ends are unknown.
inline bool KeepsEnds(const Interval& before, const Interval& after) {
  return IsSmall(before.low) == IsSmall(after.low) && IsSmall(before.high) == IsSmall(after.high);
}
inline Interval Intersect(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_SUM_H_
