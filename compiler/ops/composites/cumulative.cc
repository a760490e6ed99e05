// Cumulative sums, products, extremes and similar operations along an axis.
//
// Works in two levels, recursively: within a block every element folds the ones before it, all in
// parallel; then the blocks' totals are accumulated in the same way and combined with the blocks
// after them. That takes `kBlock` operations per element, and no dependency chain is longer than
// the number of levels.
#include <cmath>
#include <limits>

#include "compiler/ops/composites/around_axis.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

constexpr int64_t kBlock = 32;

// The accumulated operation: associative, with a neutral element. Its float64 constants are exact
// in every dtype it is used with.
struct Accumulation {
  // Folds axis 3 of a tensor of rank 5, in which elements to be ignored are neutral.
  const Node* (*fold)(Builder& b, const Node* x);
  const Node* (*join)(Builder& b, const Node* before, const Node* x);
  double neutral;
};

// (outer, length, inner) to the same shape: element j of each block of `block` folds elements 0 to
// j.
const Node* WithinBlocks(Builder& b, const Node* x, int64_t block, const Accumulation& what) {
  const Shape& shape = x->shape();
  const int64_t blocks = shape[1] / block;
  const Node* column = b.Iota(DType::kInt32, {block, 1, 1}, 0);
  const Node* element = b.Iota(DType::kInt32, {1, block, 1}, 1);
  const Node* counts = b.Not(b.Less(column, element));
  const Node* elements = b.Reshape(x, {shape[0], blocks, 1, block, shape[2]});
  const Node* folded = what.fold(b, b.Where(counts, elements, b.Const(x->dtype(), what.neutral)));
  return b.Reshape(folded, shape);
}

// Shifts x by one along axis 1, with the neutral element first.
const Node* Delayed(Builder& b, const Node* x, const Accumulation& what) {
  const int64_t length = x->shape()[1];
  const std::vector<int64_t> padding = {0, 0, 1, 0, 0, 0};
  const Node* moved = b.Pad(b.Slice(x, 1, 0, length - 1), padding);
  // Pad already filled in 0.
  if (what.neutral == 0) return moved;
  const Node* position = b.Iota(DType::kInt64, {1, length, 1}, 1);
  const Node* is_first = b.Equal(position, b.ConstInt(DType::kInt64, 0));
  return b.Where(is_first, b.Const(x->dtype(), what.neutral), moved);
}

// Accumulates along axis 1 of (outer, length, inner), in blocks for the largest length.
const Node* Accumulate(Builder& b, const Node* x, int64_t length_max, const Accumulation& what) {
  const Shape shape = x->shape();
  const int64_t length = shape[1];
  if (length_max <= kBlock) return WithinBlocks(b, x, length, what);
  const int64_t blocks = (length_max + kBlock - 1) / kBlock;
  // The padding is not neutral for every operation, but it is harmless: it is at the end, and no
  // element depends on later ones.
  const std::vector<int64_t> padding = {0, 0, 0, blocks * kBlock - length, 0, 0};
  const Node* within = WithinBlocks(b, b.Pad(x, padding), kBlock, what);
  const Node* split = b.Reshape(within, {shape[0], blocks, kBlock, shape[2]});
  const Node* totals =
      b.Reshape(b.Slice(split, 2, kBlock - 1, kBlock), {shape[0], blocks, shape[2]});
  const Node* before = Delayed(b, Accumulate(b, totals, blocks, what), what);
  const Node* joined = what.join(b, b.Unsqueeze(before, 2), split);
  return b.Slice(b.Reshape(joined, {shape[0], blocks * kBlock, shape[2]}), 1, 0, length);
}

const Node* FoldSum(Builder& b, const Node* x) { return b.Sum(x, {3}); }
const Node* FoldProduct(Builder& b, const Node* x) { return b.Prod(x, {3}); }
const Node* FoldMaximum(Builder& b, const Node* x) { return b.Max(x, {3}); }

const Node* JoinSum(Builder& b, const Node* before, const Node* x) { return b.Add(before, x); }
const Node* JoinProduct(Builder& b, const Node* before, const Node* x) { return b.Mul(before, x); }
const Node* JoinMaximum(Builder& b, const Node* before, const Node* x) {
  return b.Binary(Op::kMax, before, x);
}

double Lowest(DType dtype) {
  if (ir::IsFloat(dtype)) return -std::numeric_limits<double>::infinity();
  if (!ir::IsSigned(dtype)) return 0;
  return -std::ldexp(1.0, 8 * ir::SizeOf(dtype) - 1);
}

Expansion AlongAxis(Builder& b, const Node* x, const Attributes& attributes,
                    const Accumulation& what) {
  const AroundAxis extents = ExtentsAround(x->shape(), AxisOf(x, attributes));
  const SizeRange length = b.RangeOf(extents.length);
  if (ir::NumElements(x->shape()) == 0) return x;
  const Node* flat = b.Reshape(x, {extents.outer, extents.length, extents.inner});
  return b.Reshape(Accumulate(b, flat, length.most, what), x->shape());
}

Expansion ExpandSum(Builder& b, Operands x, const Attributes& attributes) {
  return AlongAxis(b, x[0], attributes, {FoldSum, JoinSum, 0});
}
Expansion ExpandProduct(Builder& b, Operands x, const Attributes& attributes) {
  return AlongAxis(b, x[0], attributes, {FoldProduct, JoinProduct, 1});
}
Expansion ExpandMaximum(Builder& b, Operands x, const Attributes& attributes) {
  return AlongAxis(b, x[0], attributes, {FoldMaximum, JoinMaximum, Lowest(x[0]->dtype())});
}
// The maximum in reversed order: neg for floats; not for integers, since neg of the lowest integer
// wraps.
Expansion ExpandMinimum(Builder& b, Operands x, const Attributes& attributes) {
  const Op reverse = ir::IsFloat(x[0]->dtype()) ? Op::kNeg : Op::kNot;
  const Expansion largest = ExpandMaximum(b, {b.Unary(reverse, x[0])}, attributes);
  if (!largest.ok()) return largest;
  return b.Unary(reverse, *largest);
}

const Node* FoldLogSumExp(Builder& b, const Node* x) { return LogSumExp(b, x, {3}, false); }
Expansion ExpandCumulativeLogSumExp(Builder& b, Operands x, const Attributes& attributes) {
  return AlongAxis(b, x[0], attributes,
                   {FoldLogSumExp, LogAddExp, -std::numeric_limits<double>::infinity()});
}

OpDef Cumulative(std::string_view name, DTypeRule dtype_rule, DTypeClass operand_class,
                 ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, dtype_rule, operand_class, expand, doc);
  row.attributes = {RequiredInt("axis")};
  row.constraints = {kAxisRule};
  return row;
}

}  // namespace

std::vector<OpDef> CumulativeComposites() {
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kNumeric = DTypeClass::kNumeric;
  return {
      Cumulative("cumulative_sum", kSame, kNumeric, ExpandSum,
                 "The sum of all elements up to each along axis, in x's dtype"),
      Cumulative("cumulative_prod", kSame, kNumeric, ExpandProduct,
                 "The product of all elements up to each along axis, in x's dtype"),
      Cumulative("cumulative_max", kSame, kNumeric, ExpandMaximum,
                 "The largest of all elements up to each along axis; NaN from the first one on"),
      Cumulative("cumulative_min", kSame, kNumeric, ExpandMinimum,
                 "The smallest of all elements up to each along axis; NaN from the first one on"),
      Cumulative("cumulative_logsumexp", DTypeRule::kPromoteFloat, DTypeClass::kAny,
                 ExpandCumulativeLogSumExp,
                 "log(sum(exp(x))) of all elements up to each along axis"),
  };
}

}  // namespace kiln::ops
