// Elementwise losses of predictions and targets of one shape, with PyTorch's formulas.
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using ir::Shape;

const Node* Square(Builder& b, const Node* x) { return b.Mul(x, x); }

const Node* Weighted(Builder& b, const Node* losses, Operands x, size_t weight) {
  return x.size() > weight ? b.Mul(losses, x[weight]) : losses;
}

Expansion ExpandMse(Builder& b, Operands x, const Attributes& attributes) {
  return ReduceLoss(b, Square(b, b.Sub(x[0], x[1])), attributes);
}

Expansion ExpandL1(Builder& b, Operands x, const Attributes& attributes) {
  return ReduceLoss(b, Abs(b, b.Sub(x[0], x[1])), attributes);
}

Expansion ExpandSmoothL1(Builder& b, Operands x, const Attributes& attributes) {
  const double beta = FloatOf(attributes, "beta");
  const Node* difference = b.Sub(x[0], x[1]);
  const Node* distance = Abs(b, difference);
  const Node* near = b.Mul(Square(b, difference), 0.5 / beta);
  const Node* far = b.Add(distance, -0.5 * beta);
  const Node* is_near = b.Less(distance, b.Const(distance->dtype(), beta));
  return ReduceLoss(b, b.Where(is_near, near, far), attributes);
}

Expansion ExpandHuber(Builder& b, Operands x, const Attributes& attributes) {
  const double delta = FloatOf(attributes, "delta");
  const Node* difference = b.Sub(x[0], x[1]);
  const Node* distance = Abs(b, difference);
  const Node* far = b.Mul(b.Add(distance, -0.5 * delta), delta);
  return ReduceLoss(b, b.Where(AtMost(b, distance, delta), Half(b, Square(b, difference)), far),
                    attributes);
}

// Returns log x, at least -100, with a derivative of at most 1e12, like PyTorch's. So a confidently
// wrong prediction still has a gradient, and none becomes NaN.
const Node* BoundedLog(Builder& b, const Node* x) {
  const Node* within = b.Less(b.Const(x->dtype(), 1e-12), x);
  const Node* log_min = b.Const(x->dtype(), -100);
  const Node* held = b.Detach(b.Binary(Op::kMax, b.Log(x), log_min));
  const Node* beyond = b.Add(b.Mul(b.Sub(x, b.Detach(x)), 1e12), held);
  return b.Where(within, b.Log(b.Where(within, x, b.Const(x->dtype(), 1))), beyond);
}

Expansion ExpandBinaryCrossEntropy(Builder& b, Operands x, const Attributes& attributes) {
  const Node* other = b.Add(b.Neg(x[0]), 1.0);
  const Node* yes = b.Mul(x[1], BoundedLog(b, x[0]));
  const Node* no = b.Mul(b.Add(b.Neg(x[1]), 1.0), BoundedLog(b, other));
  return ReduceLoss(b, Weighted(b, b.Neg(b.Add(yes, no)), x, 2), attributes);
}

// (1 - y) x + p log(1 + e^-x), where p is 1 + (pos_weight - 1) y.
Expansion ExpandBinaryCrossEntropyWithLogits(Builder& b, Operands x, const Attributes& attributes) {
  const Node* losses = nullptr;
  if (x.size() > 3) {
    const Node* weight = b.Add(b.Mul(b.Add(x[3], -1.0), x[1]), 1.0);
    losses = b.Add(b.Mul(b.Add(b.Neg(x[1]), 1.0), x[0]), b.Mul(weight, Softplus(b, b.Neg(x[0]))));
  } else {
    // log(1 + e^x) - x y: the same with p = 1.
    losses = b.Sub(Softplus(b, x[0]), b.Mul(x[0], x[1]));
  }
  return ReduceLoss(b, Weighted(b, losses, x, 2), attributes);
}

// Returns x log x, and 0 at 0.
const Node* TimesLog(Builder& b, const Node* x) {
  const Node* positive = b.Less(Zero(b, x), x);
  const Node* log = b.Log(b.Where(positive, x, b.Const(x->dtype(), 1)));
  return b.Where(positive, b.Mul(x, log), Zero(b, x));
}

Expansion ExpandKlDivergence(Builder& b, Operands x, const Attributes& attributes) {
  if (BoolOf(attributes, "log_target")) {
    return ReduceLoss(b, b.Mul(b.Exp(x[1]), b.Sub(x[1], x[0])), attributes);
  }
  return ReduceLoss(b, b.Sub(TimesLog(b, x[1]), b.Mul(x[1], x[0])), attributes);
}

// Returns x where the target is 1, max(0, margin - x) where it is -1, and the sum of both
// elsewhere.
Expansion ExpandHingeEmbedding(Builder& b, Operands x, const Attributes& attributes) {
  const Node* zero = Zero(b, x[0]);
  const Node* one = b.Const(x[1]->dtype(), 1);
  const Node* hinge = Positive(b, b.Add(b.Neg(x[0]), FloatOf(attributes, "margin")));
  const Node* negative = b.Where(b.Equal(x[1], one), zero, hinge);
  const Node* positive = b.Where(b.Equal(x[1], b.Neg(one)), zero, x[0]);
  return ReduceLoss(b, b.Add(positive, negative), attributes);
}

Expansion ExpandMarginRanking(Builder& b, Operands x, const Attributes& attributes) {
  const Node* order = b.Mul(b.Sub(x[1], x[0]), x[2]);
  return ReduceLoss(b, Positive(b, b.Add(order, FloatOf(attributes, "margin"))), attributes);
}

Expansion ExpandSoftMargin(Builder& b, Operands x, const Attributes& attributes) {
  return ReduceLoss(b, Softplus(b, b.Neg(b.Mul(x[0], x[1]))), attributes);
}

// Variances below epsilon are replaced by epsilon but keep their gradient.
Expansion ExpandGaussianNll(Builder& b, Operands x, const Attributes& attributes) {
  const Node* floor = b.Const(x[2]->dtype(), FloatOf(attributes, "epsilon"));
  const Node* lift = b.Where(b.Less(x[2], floor), b.Sub(floor, x[2]), Zero(b, x[2]));
  const Node* variance = b.Add(x[2], b.Detach(lift));
  const Node* error = Square(b, b.Sub(x[0], x[1]));
  const Node* losses = Half(b, b.Add(b.Log(variance), b.Div(error, variance)));
  if (BoolOf(attributes, "full")) losses = b.Add(losses, 0.5 * std::log(2 * std::numbers::pi));
  return ReduceLoss(b, losses, attributes);
}

// t log t - t + log(2 pi t) / 2 where t > 1: Stirling's approximation of log t!.
const Node* Stirling(Builder& b, const Node* target) {
  const Node* above = b.Less(b.Const(target->dtype(), 1), target);
  const Node* t = b.Where(above, target, b.Const(target->dtype(), 1));
  const Node* log = b.Log(t);
  const Node* root = Half(b, b.Add(log, std::log(2 * std::numbers::pi)));
  return b.Where(above, b.Add(b.Sub(b.Mul(t, log), t), root), Zero(b, target));
}

Expansion ExpandPoissonNll(Builder& b, Operands x, const Attributes& attributes) {
  const Node* losses = nullptr;
  if (BoolOf(attributes, "log_input")) {
    losses = b.Sub(b.Exp(x[0]), b.Mul(x[1], x[0]));
  } else {
    // Epsilon keeps the logarithm finite at 0.
    losses = b.Sub(x[0], b.Mul(x[1], b.Log(b.Add(x[0], FloatOf(attributes, "epsilon")))));
  }
  if (BoolOf(attributes, "full")) losses = b.Add(losses, Stirling(b, x[1]));
  return ReduceLoss(b, losses, attributes);
}

constexpr Rule kLossShape = {"loss", "x", R"rule(
  check is_optional(op, i) or shapes[i] == x for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} and {described(op, shapes, i)}; they must agree'
  check broadcasts_to(shapes[i], x) for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}, which must '
    "broadcast to it"
  none = attributes["reduction"] == "none"
  -> x if none else ()
)rule"};

OpDef Loss(std::string_view name, std::vector<std::string_view> operands,
           std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  return LossRow(kLossShape, name, std::move(operands), std::move(attributes), expand, doc);
}

}  // namespace

AttributeDef Reduction() {
  return OneOf(OptionalString("reduction", "mean"), {"mean", "sum", "none"});
}

OpDef LossRow(Rule shape_rule, std::string_view name, std::vector<std::string_view> operands,
              std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), DTypeRule::kPromoteFloat, DTypeClass::kFloat,
                        expand, doc);
  row.attributes = std::move(attributes);
  row.attributes.push_back(Reduction());
  row.shape_rule = shape_rule;
  return row;
}

const Node* ReduceLoss(Builder& b, const Node* losses, const Attributes& attributes) {
  const std::string& reduction = StringOf(attributes, "reduction");
  if (reduction == "none") return losses;
  const std::vector<int64_t> axes = NormalizeAxes({}, losses->shape().size()).value();
  return reduction == "sum" ? b.Sum(losses, axes) : Mean(b, losses, axes, false);
}

std::vector<OpDef> LossComposites() {
  return {
      Loss("mse_loss", {"x", "target"}, {}, ExpandMse, "(x - target) squared"),
      Loss("l1_loss", {"x", "target"}, {}, ExpandL1, "|x - target|"),
      Loss("smooth_l1_loss", {"x", "target"}, {AboveZero(OptionalFloat("beta", 1))}, ExpandSmoothL1,
           "(x - target)² / (2 beta) where |x - target| < beta, |x - target| - beta / 2 elsewhere "
           "(Girshick, 2015)"),
      Loss("huber_loss", {"x", "target"}, {AboveZero(OptionalFloat("delta", 1))}, ExpandHuber,
           "(x - target)² / 2 where |x - target| <= delta, delta (|x - target| - delta / 2) "
           "elsewhere (Huber, 1964)"),
      Loss("binary_cross_entropy", {"x", "target", "weight?"}, {}, ExpandBinaryCrossEntropy,
           "-log of x's probability of target; logarithms are held above -100"),
      Loss("binary_cross_entropy_with_logits", {"logits", "target", "weight?", "pos_weight?"}, {},
           ExpandBinaryCrossEntropyWithLogits,
           "-log of sigmoid(logits)'s probability of target, times weight; pos_weight multiplies "
           "the part of target 1"),
      Loss("kl_div", {"x", "target"}, {OptionalBool("log_target", false)}, ExpandKlDivergence,
           "target (log target - x), where x are log probabilities, and the target too with "
           "log_target"),
      Loss("hinge_embedding_loss", {"x", "target"}, {OptionalFloat("margin", 1)},
           ExpandHingeEmbedding, "x where target is 1, max(0, margin - x) where it is -1"),
      Loss("margin_ranking_loss", {"a", "b", "target"}, {OptionalFloat("margin", 0)},
           ExpandMarginRanking, "max(0, -target (a - b) + margin)"),
      Loss("soft_margin_loss", {"x", "target"}, {}, ExpandSoftMargin, "log(1 + exp(-target x))"),
      Loss("gaussian_nll_loss", {"x", "target", "var"},
           {OptionalBool("full", false), OptionalFloat("epsilon", 1e-6)}, ExpandGaussianNll,
           "-log of target's density under a normal distribution; the constant only with full"),
      Loss("poisson_nll_loss", {"x", "target"},
           {OptionalBool("log_input", true), OptionalBool("full", false),
            OptionalFloat("epsilon", 1e-8)},
           ExpandPoissonNll,
           "-log of target's probability under a Poisson distribution of mean exp(x), or x without "
           "log_input; Stirling's approximation of log target! only with full"),
  };
}

}  // namespace kiln::ops
