// The smallest and largest values of index expressions over all values of their ranges.
#ifndef KILN_COMPILER_KERNEL_INDEX_BOUNDS_H_
#define KILN_COMPILER_KERNEL_INDEX_BOUNDS_H_

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

// Computes each atom once: sums that share operands have exponentially many paths to one atom. Not
// thread-safe.
class IndexBounds {
 public:
  // Returns the bounds of an int64 node.
  Interval Of(const ir::Node* index) { return Of(SumOf(index)); }
  // Returns unknown bounds if the sum could wrap.
  Interval Of(const Sum& sum);
  Interval OfAtom(const ir::Node* atom);

 private:
  absl::flat_hash_map<const ir::Node*, Interval> known_;
};

// The same for a single node.
inline Interval BoundsOf(const ir::Node* index) { return IndexBounds().Of(index); }

// Returns the bounds of operand / divisor, rounded down; divisor >= 1.
Interval DivideInterval(const Interval& operand, int64_t divisor);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_BOUNDS_H_
