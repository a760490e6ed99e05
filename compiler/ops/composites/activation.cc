// Activation functions of neural networks, with PyTorch's numerics. Arguments of exponentials are
// clamped so that they cannot overflow and no gradient becomes NaN; NaN is propagated.
#include <cmath>
#include <numbers>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

Expansion ExpandSigmoid(Builder& b, Operands x, const Attributes&) { return Sigmoid(b, x[0]); }

Expansion ExpandLogSigmoid(Builder& b, Operands x, const Attributes&) {
  // log(sigmoid(x)) itself would be -inf where the sigmoid is 0.
  return b.Neg(Softplus(b, b.Neg(x[0])));
}

Expansion ExpandSilu(Builder& b, Operands x, const Attributes&) {
  return b.Mul(x[0], Sigmoid(b, x[0]));
}

Expansion ExpandQuickGelu(Builder& b, Operands x, const Attributes&) {
  return b.Mul(x[0], Sigmoid(b, b.Mul(x[0], 1.702)));
}

// x/2 (1 + tanh z) is x sigmoid(2z).
const Node* GeluTanh(Builder& b, const Node* x) {
  const double scale = 2 * std::sqrt(2 / std::numbers::pi);
  const Node* cubic = b.Mul(b.Mul(x, x), b.Mul(x, 0.044715));
  return b.Mul(x, Sigmoid(b, b.Mul(b.Add(x, cubic), scale)));
}

Expansion ExpandGelu(Builder& b, Operands x, const Attributes& attributes) {
  if (StringOf(attributes, "approximate") == "tanh") return GeluTanh(b, x[0]);
  const Node* scaled = b.Mul(x[0], 1 / std::numbers::sqrt2);
  const auto erf = FindOp("erf")->expand(b, {scaled}, {});
  if (!erf.ok()) return erf;
  return b.Mul(b.Mul(x[0], 0.5), b.Add(*erf, 1.0));
}

// softplus(beta x) / beta; x itself above the threshold, where the two are equal in all digits.
Expansion ExpandSoftplus(Builder& b, Operands x, const Attributes& attributes) {
  const double beta = FloatOf(attributes, "beta");
  const Node* scaled = beta == 1 ? x[0] : b.Mul(x[0], beta);
  const Node* soft = Softplus(b, scaled);
  if (beta != 1) soft = b.Mul(soft, 1 / beta);
  return b.Where(b.Greater(scaled, FloatOf(attributes, "threshold")), x[0], soft);
}

// tanh(softplus(x)) is n / (n + 2) with n = e^x (e^x + 2); it is 1 for x >= 20.
Expansion ExpandMish(Builder& b, Operands x, const Attributes&) {
  const Node* limit = b.Const(x[0]->dtype(), 20);
  const Node* e = b.Exp(b.Where(b.Less(limit, x[0]), limit, x[0]));
  const Node* n = b.Mul(e, b.Add(e, 2.0));
  return b.Mul(x[0], b.Div(n, b.Add(n, 2.0)));
}

Expansion ExpandTanhShrink(Builder& b, Operands x, const Attributes&) {
  const auto tanh = FindOp("tanh")->expand(b, {x[0]}, {});
  if (!tanh.ok()) return tanh;
  return b.Sub(x[0], *tanh);
}

Expansion ExpandSoftsign(Builder& b, Operands x, const Attributes&) {
  return b.Div(x[0], b.Add(Abs(b, x[0]), 1.0));
}

// (x + root) / 2 cancels below 0, where it also equals b / 4 over (root - x) / 2. Where `is_far`,
// the root equals |x| in all digits, and x² may overflow.
Expansion ExpandSquareplus(Builder& b, Operands x, const Attributes& attributes) {
  const double spread = FloatOf(attributes, "b");
  const DType dtype = x[0]->dtype();
  const Node* is_negative = b.Less(x[0], b.Const(dtype, 0));
  // Unlike the absolute value, this has the derivative 1 at 0, where the result's is 1/2.
  const Node* size = b.Where(is_negative, b.Neg(x[0]), x[0]);
  const Node* is_far = b.Less(b.Const(dtype, dtype == DType::kFloat64 ? 0x1p500 : 0x1p60), size);
  const Node* held = b.Where(is_far, b.Const(dtype, 1), size);
  const Node* root = b.Where(is_far, size, b.Sqrt(b.Add(b.Mul(held, held), spread)));
  const Node* half = b.Add(b.Mul(size, 0.5), b.Mul(root, 0.5));
  const Node* below = b.Div(b.Const(dtype, spread / 4), half);
  return b.Where(is_negative, below, half);
}

// Multiplies the first half along the axis by the sigmoid of the second half.
Expansion ExpandGlu(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t axis = AxisOf(x[0], attributes);
  const int64_t size = x[0]->shape()[axis];
  const Node* gate = Sigmoid(b, b.Slice(x[0], axis, size / 2, size));
  return b.Mul(b.Slice(x[0], axis, 0, size / 2), gate);
}

// Returns x where it is not above 0, else 0, so that its exponential stays finite where it is not
// used.
const Node* NegativePart(Builder& b, const Node* x) {
  const Node* zero = b.Const(x->dtype(), 0);
  return b.Where(b.Less(zero, x), zero, x);
}

// Returns scale * x where x > 0, and scale * alpha (e^(x / width) - 1) elsewhere.
const Node* Exponential(Builder& b, const Node* x, double alpha, double width, double scale) {
  const Node* held = b.Mul(NegativePart(b, x), 1 / width);
  const Node* below = b.Mul(Expm1(b, held), alpha * scale);
  // NaN is not greater than 0, so `below` propagates it.
  return b.Where(b.Greater(x, 0), scale == 1 ? x : b.Mul(x, scale), below);
}

Expansion ExpandElu(Builder& b, Operands x, const Attributes& attributes) {
  return Exponential(b, x[0], FloatOf(attributes, "alpha"), 1, 1);
}

Expansion ExpandCelu(Builder& b, Operands x, const Attributes& attributes) {
  const double alpha = FloatOf(attributes, "alpha");
  return Exponential(b, x[0], alpha, alpha, 1);
}

Expansion ExpandSelu(Builder& b, Operands x, const Attributes&) {
  return Exponential(b, x[0], 1.6732632423543772848170429916717, 1,
                     1.0507009873554804934193349852946);
}

OpDef Activation(std::string_view name, std::vector<AttributeDef> attributes, ExpandFn expand,
                 std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.attributes = std::move(attributes);
  return row;
}

constexpr Rule kHalfShape = {"half", "x", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  check x[axis] % 2 == 0:
    '"{op.name}" halves dimension {axis} of shape {x}; its size must be even'
  -> x[:axis] + (x[axis] // 2,) + x[axis + 1:]
)rule"};

}  // namespace

const Node* Sigmoid(Builder& b, const Node* x) {
  // Below the limit e^-x would be infinite: the value would still be 0, but the gradient infinity
  // times 0.
  const double largest_exponent = std::floor(std::log(ir::FormatOf(x->dtype()).largest()));
  const Node* limit = b.Const(x->dtype(), -largest_exponent);
  const Node* is_far = b.Less(x, limit);
  const Node* held = b.Where(is_far, limit, x);
  const Node* near = b.Reciprocal(b.Add(b.Exp(b.Neg(held)), 1.0));
  return b.Where(is_far, b.Const(x->dtype(), 0), near);
}

// max(x, 0) + log(1 + e^-|x|), which for very negative x is e^x with all its digits.
const Node* Softplus(Builder& b, const Node* x) {
  const Node* tail = Log1p(b, b.Exp(b.Neg(Abs(b, x))));
  return b.Add(b.Binary(Op::kMax, x, b.Const(x->dtype(), 0)), tail);
}

std::vector<OpDef> ActivationComposites() {
  OpDef glu = Activation("glu", {OptionalInt("axis", -1)}, ExpandGlu,
                         "The first half of x along axis times the sigmoid of the second (Dauphin "
                         "et al., 2017)");
  glu.shape_rule = kHalfShape;
  return {
      Activation("sigmoid", {}, ExpandSigmoid, "1 / (1 + exp(-x))"),
      Activation("logsigmoid", {}, ExpandLogSigmoid, "log(sigmoid(x))"),
      Activation("silu", {}, ExpandSilu, "x * sigmoid(x) (Elfwing et al., 2017)"),
      Activation("quick_gelu", {}, ExpandQuickGelu, "x * sigmoid(1.702 x)"),
      Activation("gelu", {OneOf(OptionalString("approximate", "none"), {"none", "tanh"})},
                 ExpandGelu,
                 "x times the normal distribution's cumulative function, by erf or, approximate = "
                 "\"tanh\", by tanh (Hendrycks and Gimpel, 2016)"),
      Activation("softplus", {AboveZero(OptionalFloat("beta", 1)), OptionalFloat("threshold", 20)},
                 ExpandSoftplus, "log(1 + exp(beta x)) / beta; x where beta x is above threshold"),
      Activation("squareplus", {OptionalFloat("b", 4)}, ExpandSquareplus,
                 "(x + sqrt(x² + b)) / 2 (Barron, 2021)"),
      Activation("mish", {}, ExpandMish, "x * tanh(softplus(x)) (Misra, 2019)"),
      Activation("tanhshrink", {}, ExpandTanhShrink, "x - tanh(x)"),
      Activation("softsign", {}, ExpandSoftsign, "x / (1 + |x|)"),
      Activation("elu", {OptionalFloat("alpha", 1)}, ExpandElu,
                 "x above 0, alpha (exp(x) - 1) elsewhere (Clevert et al., 2015)"),
      Activation("celu", {NotZero(OptionalFloat("alpha", 1))}, ExpandCelu,
                 "x above 0, alpha (exp(x / alpha) - 1) elsewhere (Barron, 2017)"),
      Activation("selu", {}, ExpandSelu,
                 "elu with alpha 1.6733 times 1.0507 (Klambauer et al., 2017)"),
      std::move(glu),
  };
}

}  // namespace kiln::ops
