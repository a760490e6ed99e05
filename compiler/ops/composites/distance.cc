// Norms, angles and distances of vectors along one axis.
#include <limits>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/constraints.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

int64_t AxisOfRank(size_t rank, const Attributes& attributes) {
  return NormalizeAxis(IntOf(attributes, "axis"), rank).value();
}

const Node* Squeezed(Builder& b, const Node* x, int64_t axis, const Attributes& attributes) {
  // The axis already has size 1, so the sum only drops it.
  return b.Sum(
      x, BoolOf(attributes, "keepdims") ? std::vector<int64_t>{} : std::vector<int64_t>{axis});
}

Expansion ExpandNormalize(Builder& b, Operands x, const Attributes& attributes) {
  const double p = FloatOf(attributes, "p");
  const int64_t axis = AxisOfRank(x[0]->shape().size(), attributes);
  return b.Div(x[0], BoundedNorm(b, x[0], axis, p, FloatOf(attributes, "epsilon")));
}

Expansion ExpandCosineSimilarity(Builder& b, Operands x, const Attributes& attributes) {
  const ir::Shape shape = BroadcastShapes({x[0]->shape(), x[1]->shape()}).value();
  const int64_t axis = AxisOfRank(shape.size(), attributes);
  const double epsilon = FloatOf(attributes, "epsilon");
  const auto unit = [&](const Node* operand) {
    const Node* whole = b.BroadcastTo(operand, shape);
    return b.Div(whole, BoundedNorm(b, whole, axis, 2, epsilon));
  };
  const Node* sum = b.Sum(b.Mul(unit(x[0]), unit(x[1])), {axis}, true);
  return Squeezed(b, sum, axis, attributes);
}

Expansion ExpandPairwiseDistance(Builder& b, Operands x, const Attributes& attributes) {
  const double p = FloatOf(attributes, "p");
  const Node* difference = b.Add(b.Sub(x[0], x[1]), FloatOf(attributes, "epsilon"));
  const int64_t axis = AxisOfRank(difference->shape().size(), attributes);
  return Squeezed(b, Norm(b, difference, {axis}, p, true), axis, attributes);
}

const Node* EuclideanNorm(Builder& b, const Node* x, absl::Span<const int64_t> axes,
                          bool keepdims) {
  const Node* wide = WithRoomForSquares(b, x);
  if (wide != x) {
    return b.Cast(Root(b, b.Sum(b.Mul(wide, wide), axes, keepdims), 2), x->dtype());
  }
  const Node* scale = ScaleOf(b, b.Max(Abs(b, x), axes, true));
  const Node* scaled = b.Mul(x, scale);
  const Node* length = b.Div(Root(b, b.Sum(b.Mul(scaled, scaled), axes, true), 2), scale);
  return b.Sum(length, keepdims ? absl::Span<const int64_t>{} : axes);
}

constexpr Rule kPairwiseShape = {"pairwise", "", R"rule(
  shape = broadcast(shapes)
  axis = normalize_axis(attributes["axis"], len(shape))
  -> shape[:axis] + ((1,) if attributes["keepdims"] else ()) + shape[axis + 1:]
)rule"};

OpDef Pairwise(std::string_view name, std::vector<AttributeDef> attributes, ExpandFn expand,
               std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.attributes = std::move(attributes);
  row.attributes.push_back(OptionalBool("keepdims", false));
  row.shape_rule = kPairwiseShape;
  return row;
}

}  // namespace

const Node* Root(Builder& b, const Node* x, double degree) {
  const Node* exponent = b.Const(x->dtype(), 1 / degree);
  if (degree < 0) return b.Binary(Op::kPow, x, exponent);
  // A root's slope is infinite at 0, and 0 times infinity would be NaN.
  const Node* nothing = AtMost(b, x, 0);
  const Node* safe = b.Where(nothing, b.Const(x->dtype(), 1), x);
  const Node* root = degree == 2 ? b.Sqrt(safe) : b.Binary(Op::kPow, safe, exponent);
  return b.Where(nothing, b.Const(x->dtype(), 0), root);
}

const Node* Norm(Builder& b, const Node* x, absl::Span<const int64_t> axes, double order,
                 bool keepdims) {
  if (order == 0) return b.Sum(b.Cast(b.Cast(x, DType::kBool), x->dtype()), axes, keepdims);
  const Node* a = Abs(b, x);
  if (order == 1) return b.Sum(a, axes, keepdims);
  if (order == kInfinity) return b.Max(a, axes, keepdims);
  // The smallest is the largest in reversed order.
  if (order == -kInfinity) return b.Neg(b.Max(b.Neg(a), axes, keepdims));
  if (order == 2) return EuclideanNorm(b, x, axes, keepdims);
  // The dominant element of the sum is scaled to about 1.
  const Node* extreme = order > 0 ? b.Max(a, axes, true) : b.Neg(b.Max(b.Neg(a), axes, true));
  const Node* scale = ScaleOf(b, extreme);
  // Powers of an order below 1 have no derivative at 0; there the norm's gradient is defined as 0.
  const auto number = [&](double value) { return b.Const(x->dtype(), value); };
  const Node* is_zero = b.Equal(a, number(0));
  const Node* scaled = b.Where(is_zero, number(1), b.Mul(a, scale));
  const Node* powers = b.Where(is_zero, number(order > 0 ? 0 : kInfinity),
                               b.Binary(Op::kPow, scaled, number(order)));
  const Node* root = b.Div(Root(b, b.Sum(powers, axes, true), order), scale);
  return b.Sum(root, keepdims ? absl::Span<const int64_t>{} : axes);
}

const Node* BoundedNorm(Builder& b, const Node* x, int64_t axis, double p, double epsilon) {
  const Node* norm = Norm(b, x, {axis}, p, true);
  const Node* norm_min = b.Const(x->dtype(), epsilon);
  // A selection and not a maximum, which would share the gradient where both are equal.
  return b.Where(b.Less(norm, norm_min), norm_min, norm);
}

std::vector<OpDef> DistanceComposites() {
  OpDef normalize = Composite("normalize", {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny,
                              ExpandNormalize, "x over its p-norm along axis, at least epsilon");
  normalize.attributes = {AboveZero(OptionalFloat("p", 2)), OptionalInt("axis", 1),
                          OptionalFloat("epsilon", 1e-12)};
  normalize.constraints = {kAxisRule};
  return {
      std::move(normalize),
      Pairwise("cosine_similarity", {OptionalInt("axis", 1), OptionalFloat("epsilon", 1e-8)},
               ExpandCosineSimilarity,
               "The sum along axis of a and b, each over its 2-norm, at least epsilon"),
      Pairwise("pairwise_distance",
               {AboveZero(OptionalFloat("p", 2)), OptionalFloat("epsilon", 1e-6),
                OptionalInt("axis", -1)},
               ExpandPairwiseDistance, "The p-norm of a - b + epsilon along axis"),
  };
}

}  // namespace kiln::ops
