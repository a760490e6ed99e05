// Reductions built from sum and max, and the normalisations over an axis.
#include <algorithm>
#include <limits>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

std::vector<int64_t> AxesOf(const Node* x, const Attributes& attributes) {
  return NormalizeAxes(IntsOf(attributes, "axes"), x->shape().size()).value();
}
bool KeepDims(const Attributes& attributes) { return BoolOf(attributes, "keepdims"); }

Expansion ExpandMean(Builder& b, Operands x, const Attributes& attributes) {
  return Mean(b, x[0], AxesOf(x[0], attributes), KeepDims(attributes));
}

const Node* Variance(Builder& b, const Node* x, const Attributes& attributes, bool keepdims) {
  const std::vector<int64_t> axes = AxesOf(x, attributes);
  // The mean of squares minus the square of the mean would cancel where x is far from 0.
  const Node* centered = b.Sub(x, Mean(b, x, axes, true));
  const double count = static_cast<double>(CountOver(x, axes));
  // Like PyTorch: if `correction` makes the divisor 0, the result is infinite or NaN.
  const double divisor = std::max(0.0, count - FloatOf(attributes, "correction"));
  return b.Mul(b.Sum(b.Mul(centered, centered), axes, keepdims), 1.0 / divisor);
}
Expansion ExpandVar(Builder& b, Operands x, const Attributes& attributes) {
  return Variance(b, x[0], attributes, KeepDims(attributes));
}
// Unlike the variance, the result has the magnitude of the numbers themselves, so squares that
// overflow or underflow must not spoil it.
Expansion ExpandStd(Builder& b, Operands x, const Attributes& attributes) {
  const Node* wide = WithRoomForSquares(b, x[0]);
  if (wide != x[0]) {
    return b.Cast(Root(b, Variance(b, wide, attributes, KeepDims(attributes)), 2), x[0]->dtype());
  }
  const std::vector<int64_t> axes = AxesOf(wide, attributes);
  const Node* scale = ScaleOf(b, b.Max(Abs(b, wide), axes, true));
  const Node* root = Root(b, Variance(b, b.Mul(wide, scale), attributes, true), 2);
  // The axes already have size 1, so the sum only drops them.
  return b.Sum(b.Div(root, scale), KeepDims(attributes) ? std::vector<int64_t>{} : axes);
}

// Reverses the order: inverts the bits of integers, which unlike neg never wraps.
const Node* Reversed(Builder& b, const Node* x) {
  return b.Unary(ir::IsFloat(x->dtype()) ? Op::kNeg : Op::kNot, x);
}

Expansion ExpandMin(Builder& b, Operands x, const Attributes& attributes) {
  return Reversed(b, b.Max(Reversed(b, x[0]), AxesOf(x[0], attributes), KeepDims(attributes)));
}

Expansion ExpandAny(Builder& b, Operands x, const Attributes& attributes) {
  return b.Max(b.Cast(x[0], DType::kBool), AxesOf(x[0], attributes), KeepDims(attributes));
}
Expansion ExpandAll(Builder& b, Operands x, const Attributes& attributes) {
  const Node* fails = b.Not(b.Cast(x[0], DType::kBool));
  return b.Not(b.Max(fails, AxesOf(x[0], attributes), KeepDims(attributes)));
}

// The first of the largest elements, or of the NaNs: those score length - index, all others 0, and
// the highest score wins.
Expansion ExpandArgmax(Builder& b, Operands x, const Attributes& attributes) {
  const std::vector<int64_t>& given = IntsOf(attributes, "axes");
  const size_t rank = x[0]->shape().size();
  const Node* flat = given.empty() ? b.Reshape(x[0], {ir::NumElements(x[0]->shape())}) : x[0];
  const int64_t axis = given.empty() ? 0 : NormalizeAxis(given[0], rank).value();
  const int64_t length = flat->shape()[axis];
  const DType dtype = length < (int64_t{1} << 31) ? DType::kInt32 : DType::kInt64;
  const Node* best = b.Equal(flat, b.Max(flat, {axis}, true));
  if (ir::IsFloat(flat->dtype())) best = b.Binary(Op::kOr, best, IsNan(b, flat));
  const Node* score = b.Sub(b.ConstInt(dtype, length), b.Iota(dtype, flat->shape(), axis));
  const Node* top = b.Max(b.Where(best, score, b.ConstInt(dtype, 0)), {axis}, true);
  const Node* index = b.Cast(b.Sub(b.ConstInt(dtype, length), top), DType::kInt64);
  ir::Shape shape = given.empty() ? ir::Shape(rank, 1) : index->shape();
  if (!KeepDims(attributes)) {
    given.empty() ? shape.clear() : static_cast<void>(shape.erase(shape.begin() + axis));
  }
  return b.Reshape(index, shape);
}

Expansion ExpandArgmin(Builder& b, Operands x, const Attributes& attributes) {
  return ExpandArgmax(b, {Reversed(b, x[0])}, attributes);
}

Expansion ExpandCountNonzero(Builder& b, Operands x, const Attributes& attributes) {
  const Node* is_nonzero = b.Cast(b.Cast(x[0], DType::kBool), DType::kInt64);
  return b.Sum(is_nonzero, AxesOf(x[0], attributes), KeepDims(attributes));
}

Expansion ExpandVectorNorm(Builder& b, Operands x, const Attributes& attributes) {
  return Norm(b, x[0], AxesOf(x[0], attributes), FloatOf(attributes, "ord"), KeepDims(attributes));
}

Expansion ExpandLogSumExp(Builder& b, Operands x, const Attributes& attributes) {
  return LogSumExp(b, x[0], AxesOf(x[0], attributes), KeepDims(attributes));
}

Expansion ExpandSoftmax(Builder& b, Operands x, const Attributes& attributes) {
  return Softmax(b, x[0], AxisOf(x[0], attributes));
}
Expansion ExpandLogSoftmax(Builder& b, Operands x, const Attributes& attributes) {
  return LogSoftmax(b, x[0], AxisOf(x[0], attributes));
}

OpDef Statistic(std::string_view name, DTypeRule dtype_rule, DTypeClass operand_class,
                ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, dtype_rule, operand_class, expand, doc);
  row.attributes = ReduceAttributes();
  row.shape_rule = kReduceShape;
  return row;
}

OpDef OverAxis(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.attributes = {OptionalInt("axis", -1)};
  row.constraints = {kAxisRule};
  return row;
}

// x minus its maximum, which makes exp safe and does not change the result; and the sum of the
// exponentials.
struct Shifted {
  const Node* x;
  const Node* exponentials;
  const Node* sum;
};
Shifted Shift(Builder& b, const Node* x, int64_t axis) {
  // The shift does not change the result, so it has no gradient.
  const Node* shifted = b.Sub(x, b.Detach(b.Max(x, {axis}, true)));
  const Node* exponentials = b.Exp(shifted);
  return {shifted, exponentials, b.Sum(exponentials, {axis}, true)};
}

constexpr Rule kOneAxisRule = {"one_axis", "", R"rule(
  check len(attributes["axes"]) <= 1:
    '"{op.name}" over several axes; it takes one, or none for the flattened tensor'
)rule"};

}  // namespace

int64_t CountOver(const Node* x, absl::Span<const int64_t> axes) {
  int64_t count = 1;
  for (const int64_t axis : axes) count *= x->shape()[axis];
  return count;
}

const Node* Mean(Builder& b, const Node* x, absl::Span<const int64_t> axes, bool keepdims) {
  const Node* sum = b.Sum(x, axes, keepdims);
  // 0 / 0, where the factor 1 / count would be infinite.
  if (CountOver(x, axes) == 0) return b.FullLike(sum, std::numeric_limits<double>::quiet_NaN());
  return b.Mul(sum, 1.0 / static_cast<double>(CountOver(x, axes)));
}

const Node* MaxOfFirst(Builder& b, const Node* x, std::vector<int64_t> axes, const Node* counts) {
  const Node* value = b.Max(x, axes);
  const DType dtype = x->dtype();
  if (!ir::IsFloat(dtype) || ir::NumElements(x->shape()) == 0) return value;
  axes = NormalizeAxes(axes, x->shape().size()).value();
  ir::Shape shape(x->shape().size(), 1);
  for (const int64_t axis : axes) shape[axis] = x->shape()[axis];
  const int64_t count = CountOver(x, axes);
  const DType place = count >> 31 == 0 ? DType::kInt32 : DType::kInt64;
  const auto whole = [&](int64_t number) { return b.ConstInt(place, number); };
  // 1 at the last position, increasing by one towards the first.
  const Node* from_end = b.Sub(whole(count), b.Reshape(b.Iota(place, {count}, 0), shape));
  const Node* wins = b.Binary(Op::kOr, b.Equal(x, b.Max(x, axes, true)), IsNan(b, x));
  if (counts != nullptr) wins = b.Binary(Op::kAnd, wins, counts);
  const Node* first = b.Max(b.Where(wins, from_end, whole(0)), axes, true);
  const Node* zero = b.Const(dtype, 0);
  const Node* chosen = b.Sum(b.Where(b.Equal(from_end, first), x, zero), axes);
  return b.WithDerivative(b.Detach(value), chosen, b.Const(dtype, 1));
}

// Subtracts the maximum before exp if it is finite, else 0; its gradient cancels.
const Node* LogSumExp(Builder& b, const Node* x, absl::Span<const int64_t> axes, bool keepdims) {
  const double infinity = std::numeric_limits<double>::infinity();
  const auto constant = [&](double value) { return b.Const(x->dtype(), value); };
  const Node* largest = b.Detach(b.Max(x, axes, true));
  const Node* shift = b.Where(b.Less(Abs(b, largest), constant(infinity)), largest, constant(0));
  const Node* sum = b.Sum(b.Exp(b.Sub(x, shift)), axes, true);
  // If all are -inf, so is the result, and no gradient flows.
  const Node* is_zero = b.Equal(sum, constant(0));
  const Node* logarithm = b.Log(b.Where(is_zero, constant(1), sum));
  const Node* result = b.Where(is_zero, constant(-infinity), b.Add(logarithm, shift));
  return b.Sum(result, keepdims ? absl::Span<const int64_t>{} : axes);
}

const Node* Softmax(Builder& b, const Node* x, int64_t axis) {
  const Shifted shifted = Shift(b, x, axis);
  // One division per row instead of one per element.
  return b.Mul(shifted.exponentials, b.Reciprocal(shifted.sum));
}

const Node* LogSoftmax(Builder& b, const Node* x, int64_t axis) {
  const Shifted shifted = Shift(b, x, axis);
  return b.Sub(shifted.x, b.Log(shifted.sum));
}

std::vector<OpDef> StatisticsComposites() {
  constexpr auto kToFloat = DTypeRule::kPromoteFloat;
  constexpr auto kAny = DTypeClass::kAny;
  OpDef var = Statistic("var", kToFloat, kAny, ExpandVar,
                        "The variance: squared distances from the mean, summed and divided by "
                        "their count less correction");
  var.attributes.push_back(OptionalFloat("correction", 1));
  OpDef deviation = Statistic("std", kToFloat, kAny, ExpandStd,
                              "The square root of var; its gradient is 0 where it is 0");
  deviation.attributes.push_back(OptionalFloat("correction", 1));
  OpDef norm = Statistic("vector_norm", kToFloat, kAny, ExpandVectorNorm,
                         "The norm of order ord over axes: sum(|x|^ord)^(1/ord); inf the largest "
                         "|x|, -inf the smallest, 0 how many are not 0. No power overflows or "
                         "vanishes; the gradient of order 2 is 0 where all of x is");
  norm.attributes.push_back(OptionalFloat("ord", 2));
  return {
      Statistic("mean", kToFloat, kAny, ExpandMean, "The mean over axes"),
      std::move(var),
      std::move(deviation),
      std::move(norm),
      Statistic("min", DTypeRule::kSame, kAny, ExpandMin, "The smallest over axes; NaN if any is"),
      Statistic("any", DTypeRule::kBool, kAny, ExpandAny, "Whether any element is not 0"),
      Statistic("all", DTypeRule::kBool, kAny, ExpandAll, "Whether no element is 0"),
      Requiring({kOneAxisRule},
                Statistic("argmax", DTypeRule::kInt64, DTypeClass::kNumeric, ExpandArgmax,
                          "The index of the first largest element along the one axis in axes; an "
                          "empty list means the flattened tensor")),
      Requiring({kOneAxisRule},
                Statistic("argmin", DTypeRule::kInt64, DTypeClass::kNumeric, ExpandArgmin,
                          "The index of the first smallest element, as argmax")),
      Statistic("count_nonzero", DTypeRule::kInt64, kAny, ExpandCountNonzero,
                "How many elements over axes are not 0"),
      Statistic("logsumexp", kToFloat, kAny, ExpandLogSumExp, "log(sum(exp(x))) over axes"),
      OverAxis("softmax", ExpandSoftmax, "exp(x) / sum(exp(x)) along axis"),
      OverAxis("log_softmax", ExpandLogSoftmax, "log(softmax(x)) along axis"),
  };
}

}  // namespace kiln::ops
