// Losses: means over the batch, as PyTorch's defaults.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composite.h"
#include "compiler/ops/infer.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using ir::Shape;

std::vector<int64_t> AllAxes(const Node* x) { return NormalizeAxes({}, x->shape().size()).value(); }

// Classes are dimension 1, or 0 where there is no batch.
int64_t ClassAxis(const Node* x) { return x->shape().size() > 1 ? 1 : 0; }

absl::Status CheckLabels(const Node* x, const Node* labels) {
  if (x->shape().empty()) return absl::InvalidArgumentError("scores without a class dimension");
  Shape wanted = x->shape();
  wanted.erase(wanted.begin() + ClassAxis(x));
  if (labels->shape() == wanted) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("labels of shape ", ToString(labels->shape()),
                                           " for scores of shape ", ToString(x->shape()),
                                           "; they must have shape ", ToString(wanted)));
}

// The mean of minus each label's log probability. A comparison with the class's number picks it,
// which fuses with what made the log probabilities and has no scatter as gradient.
const Node* NegativeLogLikelihood(Builder& b, const Node* log_probabilities, const Node* labels) {
  const int64_t axis = ClassAxis(log_probabilities);
  const Node* classes = b.Iota(labels->dtype(), log_probabilities->shape(), axis);
  const Node* picked = b.Where(b.Equal(classes, b.Unsqueeze(labels, axis)), log_probabilities,
                               b.Const(log_probabilities->dtype(), 0));
  const double count = static_cast<double>(ir::NumElements(labels->shape()));
  return b.Mul(b.Sum(picked, AllAxes(picked)), -1.0 / count);
}

Expansion ExpandNll(Builder& b, Operands x, const Attributes&) {
  const absl::Status fits = CheckLabels(x[0], x[1]);
  if (!fits.ok()) return fits;
  return NegativeLogLikelihood(b, x[0], x[1]);
}

Expansion ExpandCrossEntropy(Builder& b, Operands x, const Attributes&) {
  const absl::Status fits = CheckLabels(x[0], x[1]);
  if (!fits.ok()) return fits;
  return NegativeLogLikelihood(b, LogSoftmax(b, x[0], ClassAxis(x[0])), x[1]);
}

absl::Status CheckPair(Operands x) {
  if (x[0]->shape() == x[1]->shape()) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat("predictions of shape ", ToString(x[0]->shape()),
                                           " and targets of shape ", ToString(x[1]->shape()),
                                           "; they must agree"));
}

Expansion ExpandMse(Builder& b, Operands x, const Attributes&) {
  const absl::Status fits = CheckPair(x);
  if (!fits.ok()) return fits;
  const Node* difference = b.Sub(x[0], x[1]);
  return Mean(b, b.Mul(difference, difference), AllAxes(difference), false);
}

// max(x, 0) - x y + log(1 + e^-|x|)
Expansion ExpandBinaryCrossEntropy(Builder& b, Operands x, const Attributes&) {
  const absl::Status fits = CheckPair(x);
  if (!fits.ok()) return fits;
  const auto softplus = FindOp("softplus")->expand(b, {x[0]}, {});
  if (!softplus.ok()) return softplus;
  return Mean(b, b.Sub(*softplus, b.Mul(x[0], x[1])), AllAxes(x[0]), false);
}

OpDef Loss(std::string_view name, std::vector<std::string_view> operands, DTypeRule dtype_rule,
           ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), dtype_rule, DTypeClass::kFloat, expand, doc);
  row.shape_rule = ShapeRule::kScalar;
  return row;
}

OpDef LabelLoss(std::string_view name, std::string_view scores, ExpandFn expand,
                std::string_view doc) {
  OpDef row = Loss(name, {scores, "labels"}, DTypeRule::kSame, expand, doc);
  row.special_operand = 1;
  return row;
}

}  // namespace

std::vector<OpDef> LossComposites() {
  return {
      LabelLoss("cross_entropy", "logits", ExpandCrossEntropy,
                "The mean of -log(softmax(logits))[label]; classes are dimension 1. A label out of "
                "range adds 0"),
      LabelLoss("nll_loss", "log_probabilities", ExpandNll,
                "The mean of -log_probabilities[label]; classes are dimension 1. A label out of "
                "range adds 0"),
      Loss("mse_loss", {"x", "target"}, DTypeRule::kPromoteFloat, ExpandMse,
           "The mean of (x - target) squared"),
      Loss("binary_cross_entropy_with_logits", {"logits", "target"}, DTypeRule::kPromoteFloat,
           ExpandBinaryCrossEntropy, "The mean of -log of sigmoid(logits)'s probability of target"),
  };
}

}  // namespace kiln::ops
