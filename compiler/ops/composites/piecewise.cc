// Piecewise linear activation functions. Their gradients at the joints are PyTorch's, and NaN is
// propagated.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using ir::Shape;

const Node* AtLeast(Builder& b, const Node* x, double bound) {
  const Node* limit = b.Const(x->dtype(), bound);
  if (!ir::IsFloat(x->dtype())) return b.Not(b.Less(x, limit));
  // The negation of less would hold for NaN.
  return b.Binary(Op::kOr, b.Less(limit, x), b.Equal(limit, x));
}

// Clamps x to [low, high]; the gradient is 0 outside and at both ends.
const Node* HardTanh(Builder& b, const Node* x, double low, double high) {
  const Node* upper = b.Where(AtLeast(b, x, high), b.Const(x->dtype(), high), x);
  return b.Where(AtMost(b, x, low), b.Const(x->dtype(), low), upper);
}

Expansion ExpandRelu(Builder& b, Operands x, const Attributes&) {
  // NaN is not <= 0, so it is kept. At 0 the constant is selected, whose gradient is 0. The
  // partition recognises this form (partition/normalize/normalize.cc).
  return b.Where(AtMost(b, x[0], 0), Zero(b, x[0]), x[0]);
}

Expansion ExpandRelu6(Builder& b, Operands x, const Attributes&) { return HardTanh(b, x[0], 0, 6); }

Expansion ExpandHardTanh(Builder& b, Operands x, const Attributes& attributes) {
  const double low = FloatOf(attributes, "min");
  const double high = FloatOf(attributes, "max");
  return HardTanh(b, x[0], low, high);
}

Expansion ExpandLeakyRelu(Builder& b, Operands x, const Attributes& attributes) {
  return b.Where(b.Greater(x[0], 0), x[0], b.Mul(x[0], FloatOf(attributes, "slope")));
}

// One slope, or one per channel: dimension 1.
Expansion ExpandPrelu(Builder& b, Operands x, const Attributes&) {
  const Shape& shape = x[0]->shape();
  const int64_t slopes = ir::NumElements(x[1]->shape());
  Shape along(shape.size(), 1);
  if (slopes != 1) along[1] = slopes;
  return b.Where(b.Greater(x[0], 0), x[0], b.Mul(x[0], b.Reshape(x[1], along)));
}

const Node* HardSigmoid(Builder& b, const Node* x) {
  return b.Mul(HardTanh(b, b.Add(x, 3.0), 0, 6), 1.0 / 6);
}
Expansion ExpandHardSigmoid(Builder& b, Operands x, const Attributes&) {
  return HardSigmoid(b, x[0]);
}
Expansion ExpandHardSwish(Builder& b, Operands x, const Attributes&) {
  return b.Mul(x[0], HardSigmoid(b, x[0]));
}

Expansion ExpandSoftShrink(Builder& b, Operands x, const Attributes& attributes) {
  const double lambda = FloatOf(attributes, "lambd");
  const Node* zero = Zero(b, x[0]);
  const Node* nearer = b.Where(b.Less(x[0], zero), b.Add(x[0], lambda), b.Add(x[0], -lambda));
  return b.Where(AtMost(b, Abs(b, x[0]), lambda), zero, nearer);
}

Expansion ExpandHardShrink(Builder& b, Operands x, const Attributes& attributes) {
  const Node* near = AtMost(b, Abs(b, x[0]), FloatOf(attributes, "lambd"));
  return b.Where(near, Zero(b, x[0]), x[0]);
}

Expansion ExpandThreshold(Builder& b, Operands x, const Attributes& attributes) {
  const Node* value = b.Const(x[0]->dtype(), FloatOf(attributes, "value"));
  return b.Where(AtMost(b, x[0], FloatOf(attributes, "threshold")), value, x[0]);
}

OpDef Piecewise(std::string_view name, DTypeRule dtype_rule, std::vector<AttributeDef> attributes,
                ExpandFn expand, std::string_view doc) {
  const bool same = dtype_rule == DTypeRule::kSame;
  OpDef row = Composite(name, {"x"}, dtype_rule, same ? DTypeClass::kNumeric : DTypeClass::kAny,
                        expand, doc);
  row.attributes = std::move(attributes);
  return row;
}

constexpr Rule kSlopesRule = {"slopes", "x, weight", R"rule(
  channels = x[1] if len(x) > 1 else 1
  check weight == () or weight == (1,) or weight == (channels,):
    '"{op.name}" of {channels} channels with {described(op, shapes, 1)}; it takes one slope, or '
    "one for each channel"
)rule"};

constexpr Rule kOrderedBoundsRule = {"ordered_bounds", "", R"rule(
  low = attributes["min"]
  high = attributes["max"]
  check low < high: '"{op.name}" between {low} and {high}; "min" must be less than "max"'
)rule"};

}  // namespace

const Node* AtMost(Builder& b, const Node* x, double bound) {
  const Node* limit = b.Const(x->dtype(), bound);
  if (!ir::IsFloat(x->dtype())) return b.Not(b.Less(limit, x));
  return b.Binary(Op::kOr, b.Less(x, limit), b.Equal(x, limit));
}

std::vector<OpDef> PiecewiseComposites() {
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kToFloat = DTypeRule::kPromoteFloat;
  OpDef prelu = Composite("prelu", {"x", "weight"}, kToFloat, DTypeClass::kFloat, ExpandPrelu,
                          "x above 0, weight * x elsewhere, with one weight or one for each "
                          "channel, dimension 1 (He et al., 2015)");
  prelu.constraints = {kSlopesRule};
  return {
      Piecewise("relu", kSame, {}, ExpandRelu, "max(x, 0); its gradient at 0 is 0"),
      Piecewise("relu6", kSame, {}, ExpandRelu6, "min(max(x, 0), 6)"),
      Requiring({kOrderedBoundsRule},
                Piecewise("hardtanh", kSame, {OptionalFloat("min", -1), OptionalFloat("max", 1)},
                          ExpandHardTanh, "x held between min and max; the gradient at both is 0")),
      Piecewise("leaky_relu", kToFloat, {OptionalFloat("slope", 0.01)}, ExpandLeakyRelu,
                "x above 0, slope * x elsewhere"),
      std::move(prelu),
      Piecewise("hardsigmoid", kToFloat, {}, ExpandHardSigmoid, "relu6(x + 3) / 6"),
      Piecewise("hardswish", kToFloat, {}, ExpandHardSwish,
                "x * relu6(x + 3) / 6 (Howard et al., 2019)"),
      Piecewise("softshrink", kToFloat, {NotNegative(OptionalFloat("lambd", 0.5))},
                ExpandSoftShrink, "x, lambd nearer to 0; 0 where |x| <= lambd"),
      Piecewise("hardshrink", kToFloat, {OptionalFloat("lambd", 0.5)}, ExpandHardShrink,
                "x; 0 where |x| <= lambd"),
      Piecewise("threshold", kSame, {OptionalFloat("threshold", 0), OptionalFloat("value", 0)},
                ExpandThreshold, "x above threshold, value elsewhere"),
  };
}

}  // namespace kiln::ops
