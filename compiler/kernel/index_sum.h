// Plain arithmetic on Sums and Intervals, free of a context. Part of index.h's implementation.
#ifndef KILN_COMPILER_KERNEL_INDEX_SUM_H_
#define KILN_COMPILER_KERNEL_INDEX_SUM_H_

#include <algorithm>
#include <cstdint>

#include "compiler/kernel/index.h"

namespace kiln::kernel {

inline int64_t WrappingAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t WrappingMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// Of a number without its sign.
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
// Whether a node is index arithmetic, which this library knows.
inline bool IsIndex(const ir::Node* node) { return node->dtype() == ir::DType::kInt64; }
// The constant that an idiv or mod divides by; 0 if it is none or not positive.
int64_t Divisor(const ir::Node* node);

// a + factor * b. Numbers wrap, as the sum's value does. `unordered`: b's terms may be in any
// order.
Sum AddScaled(const Sum& a, Sum b, int64_t factor, bool unordered = false);
// 0 if the atom is absent.
int64_t CoefficientOf(const Sum& sum, const ir::Node* atom);

// Saturate at ±kUnbounded.
Interval AddIntervals(const Interval& a, const Interval& b);
Interval Scale(const Interval& interval, int64_t factor);
// Of sums: one of which an end is not known can wrap, and then nothing is known of it.
Interval AddUnlessWrapped(const Interval& a, const Interval& b);
// Ends that are not known stay so.
Interval Shift(const Interval& interval, int64_t by);
// Whether the ends that are not known are the same.
inline bool KeepsEnds(const Interval& before, const Interval& after) {
  return IsSmall(before.low) == IsSmall(after.low) && IsSmall(before.high) == IsSmall(after.high);
}
inline Interval Intersect(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_SUM_H_
