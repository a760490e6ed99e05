// Activation functions of neural networks, with PyTorch's numerics.
#include <cmath>
#include <numbers>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// The largest x for which e^x is finite in the dtype, rounded down.
double LargestExponent(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 709;
    case DType::kFloat32:
    case DType::kBFloat16:
      return 88;
    default:
      return dtype == DType::kFloat8E4M3 ? 6 : 10;
  }
}

Expansion ExpandSigmoid(Builder& b, Operands x, const Attributes&) { return Sigmoid(b, x[0]); }

Expansion ExpandRelu(Builder& b, Operands x, const Attributes&) {
  return b.Where(b.Greater(x[0], 0), x[0], b.Const(x[0]->dtype(), 0));
}

Expansion ExpandLeakyRelu(Builder& b, Operands x, const Attributes& attributes) {
  return b.Where(b.Greater(x[0], 0), x[0], b.Mul(x[0], FloatOf(attributes, "slope")));
}

Expansion ExpandSilu(Builder& b, Operands x, const Attributes&) {
  return b.Mul(x[0], Sigmoid(b, x[0]));
}

// x/2 (1 + tanh z) is x sigmoid(2z).
const Node* GeluTanh(Builder& b, const Node* x) {
  const double scale = 2 * std::sqrt(2 / std::numbers::pi);
  const Node* cubic = b.Mul(b.Mul(x, x), b.Mul(x, 0.044715));
  return b.Mul(x, Sigmoid(b, b.Mul(b.Add(x, cubic), scale)));
}

Expansion ExpandGelu(Builder& b, Operands x, const Attributes& attributes) {
  const std::string& form = StringOf(attributes, "approximate");
  if (form == "tanh") return GeluTanh(b, x[0]);
  if (form != "none") {
    return absl::InvalidArgumentError(
        StrCat("gelu's \"approximate\" is \"", form, "\"; it must be \"none\" or \"tanh\""));
  }
  const Node* scaled = b.Mul(x[0], 1 / std::numbers::sqrt2);
  const auto erf = FindOp("erf")->expand(b, {scaled}, {});
  if (!erf.ok()) return erf;
  return b.Mul(b.Mul(x[0], 0.5), b.Add(*erf, 1.0));
}

// max(x, 0) + log(1 + e^-|x|)
Expansion ExpandSoftplus(Builder& b, Operands x, const Attributes&) {
  const Node* zero = b.Const(x[0]->dtype(), 0);
  const Node* tail = b.Log(b.Add(b.Exp(b.Neg(Abs(b, x[0]))), 1.0));
  return b.Add(b.Binary(Op::kMax, x[0], zero), tail);
}

OpDef Activation(std::string_view name, std::vector<AttributeDef> attributes, ExpandFn expand,
                 std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.attributes = std::move(attributes);
  return row;
}

}  // namespace

const Node* Sigmoid(Builder& b, const Node* x) {
  const Node* held = b.Binary(Op::kMax, x, b.Const(x->dtype(), -LargestExponent(x->dtype())));
  return b.Reciprocal(b.Add(b.Exp(b.Neg(held)), 1.0));
}

std::vector<OpDef> ActivationComposites() {
  OpDef relu = Activation("relu", {}, ExpandRelu, "max(x, 0); its gradient at 0 is 0");
  relu.dtype_rule = DTypeRule::kSame;
  relu.operand_class = DTypeClass::kNumeric;
  return {
      std::move(relu),
      Activation("leaky_relu", {OptionalFloat("slope", 0.01)}, ExpandLeakyRelu,
                 "x above 0, slope * x elsewhere"),
      Activation("sigmoid", {}, ExpandSigmoid, "1 / (1 + exp(-x))"),
      Activation("silu", {}, ExpandSilu, "x * sigmoid(x) (Elfwing et al., 2017)"),
      Activation("gelu", {OptionalString("approximate", "none")}, ExpandGelu,
                 "x times the normal distribution's cumulative function, by erf or, approximate = "
                 "\"tanh\", by tanh (Hendrycks and Gimpel, 2016)"),
      Activation("softplus", {}, ExpandSoftplus, "log(1 + exp(x))"),
  };
}

}  // namespace kiln::ops
