// Plain arithmetic on Sums and Intervals, free of a context. Part of index.h's implementation.
#ifndef KILN_COMPILER_KERNEL_INDEX_SUM_H_
#define KILN_COMPILER_KERNEL_INDEX_SUM_H_

#include <algorithm>
#include <cstdint>

#include "compiler/kernel/index.h"

namespace kiln::kernel {

inline int64_t FloorDiv(int64_t a, int64_t b) {
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
inline int64_t CeilDiv(int64_t a, int64_t b) { return -FloorDiv(-a, b); }
inline bool IsKnown(const Interval& i) { return i.low > -kUnbounded && i.high < kUnbounded; }
// The constant that an idiv or mod divides by; 0 if it is none or not positive.
int64_t Divisor(const ir::Node* node);

// a + factor * b. `unordered`: b's terms may be in any order.
Sum AddScaled(const Sum& a, Sum b, int64_t factor, bool unordered = false);
// 0 if the atom is absent.
int64_t CoefficientOf(const Sum& sum, const ir::Node* atom);

// Saturate at ±kUnbounded.
Interval AddIntervals(const Interval& a, const Interval& b);
Interval Scale(const Interval& interval, int64_t factor);
inline Interval Intersect(const Interval& a, const Interval& b) {
  return {std::max(a.low, b.low), std::min(a.high, b.high)};
}

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_SUM_H_
