// Arithmetic on index expressions: int64 nodes over ranges with known bounds.
//
// Every result is in one canonical form, a sum of terms: coefficient * atom + … + constant, where
// an atom is a range, a load, idiv(sum, c) or mod(sum, c). Division and modulo split sums by
// divisibility and bounds, so that the indices of reshapes cancel: (r0*20 + r1) / 20 is r0 if r1 <
// 20. Two expressions that are equal as digits of one number become the same node. (Fold rules as
// in Halide's and tinygrad's simplifiers; the digit view follows MLIR's linearise/delinearise.)
//
// Ranges count from 0 to extent-1, every extent >= 1. Sums wrap, as int64 does: data may be any
// number and be multiplied by any number. Division and the division of bounds therefore split only
// sums that are proved not to wrap.
#ifndef KILN_COMPILER_KERNEL_INDEX_H_
#define KILN_COMPILER_KERNEL_INDEX_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/index_bounds.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::kernel {

// low <= sum <= high. The sum's constant is 0, its leading coefficient is positive and its
// coefficients have no common factor, as far as the sum cannot wrap.
struct Bound {
  Sum sum;
  Interval interval;
  bool operator==(const Bound&) const = default;
};
// A conjunction: all bounds hold and all conditions (other bool nodes) are true. An empty one is
// always true.
struct Validity {
  bool never = false;  // proved false
  std::vector<Bound> bounds;
  std::vector<const ir::Node*> conditions;
  bool always() const { return !never && bounds.empty() && conditions.empty(); }
  bool operator==(const Validity&) const = default;
};

// Makes index expressions in one context. Memoises sums. Not thread-safe.
class IndexMath {
 public:
  explicit IndexMath(ir::Context& context) : context_(context) {}

  const ir::Node* Constant(int64_t value);
  // Returns a range with an id that this object has not used yet.
  const ir::Node* Range(int64_t extent);
  const ir::Node* Add(const ir::Node* a, const ir::Node* b);
  const ir::Node* Sub(const ir::Node* a, const ir::Node* b);
  const ir::Node* Mul(const ir::Node* a, int64_t factor);
  // Flooring; divisor >= 1. `where` is a condition that may be assumed, because the result is used
  // only where it holds; may be null.
  const ir::Node* Div(const ir::Node* a, int64_t divisor, const Validity* where = nullptr);
  const ir::Node* Mod(const ir::Node* a, int64_t divisor, const Validity* where = nullptr);
  // Sum of digit[i] * the product of extents after i.
  const ir::Node* Flatten(absl::Span<const ir::Node* const> digits,
                          absl::Span<const int64_t> extents);
  // The inverse of Flatten for an index in [0, product of extents).
  std::vector<const ir::Node*> Unflatten(const ir::Node* index, absl::Span<const int64_t> extents,
                                         const Validity* where = nullptr);

  // Returns any int64 expression in canonical form; other int64 ops become atoms over simplified
  // operands.
  const ir::Node* Simplify(const ir::Node* index, const Validity* where = nullptr);

  // Adds low <= index < high to the conjunction: omitted if it is proved, merged with other bounds
  // on the same sum.
  void Require(Validity& validity, const ir::Node* index, int64_t low, int64_t high);
  // Adds a bool node to the conjunction; comparisons of indices with constants become bounds.
  void Require(Validity& validity, const ir::Node* condition);
  // Returns a bool node in canonical order; null if it is always true.
  const ir::Node* ToNode(const Validity& validity);
  // Returns the inverse of ToNode; null is always true.
  Validity ToValidity(const ir::Node* condition);

  Interval BoundsOf(const ir::Node* index, const Validity& where);

  Sum ToSum(const ir::Node* index);
  const ir::Node* ToNode(const Sum& sum);
  ir::Context& context() { return context_; }

 private:
  using Simplified = absl::flat_hash_map<const ir::Node*, const ir::Node*>;
  const ir::Node* Simplify(const ir::Node* index, const Validity* where, Simplified& known);
  const ir::Node* SimplifyOnce(const ir::Node* index, const Validity* where, Simplified& known);
  Interval AtomBounds(const ir::Node* atom, const Validity& where);
  Interval SumBounds(const Sum& sum, const Validity* where);
  // Returns whether no part of the sum can wrap.
  bool IsExact(const Sum& sum, const Validity* where);
  // multiple * factor + rest, where the rest is provably in [0, factor).
  struct Part : Division {
    int64_t factor = 1;
  };
  // Splits a sum by the first factor of the divisor that allows it; nothing if none does.
  std::optional<Part> DivisiblePart(const Sum& sum, int64_t divisor, const Validity* where);
  Sum DivSum(const Sum& sum, int64_t divisor, const Validity* where);
  Sum ModSum(const Sum& sum, int64_t divisor, const Validity* where);
  // The same for a sum that is not split.
  Sum DivAtom(const Sum& sum, int64_t divisor, const Validity* where);
  Sum ModAtom(const Sum& sum, int64_t divisor, const Validity* where);
  const ir::Node* Atom(ir::Op op, const Sum& operand, int64_t divisor);
  void CombineDigits(Sum& sum);
  void RequireBound(Validity& validity, Sum sum, Interval interval);

  ir::Context& context_;
  int64_t next_range_ = 0;
  absl::flat_hash_map<const ir::Node*, Sum> sums_;
  IndexBounds bounds_;
  // Results of the current outermost call of AtomBounds with a condition, if there is one.
  absl::flat_hash_map<const ir::Node*, Interval> conditional_bounds_;
  int conditional_depth_ = 0;
};

// A total order of nodes by structure, the same in every context; ranges by id. Returns a negative
// number, zero or a positive number.
int Compare(const ir::Node* a, const ir::Node* b);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_INDEX_H_
