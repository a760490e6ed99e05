// Losses of class scores (the classes are dimension 1) against labels or probabilities.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/classes.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Shape;

int64_t ClassAxis(const Node* x) { return x->shape().size() > 1 ? 1 : 0; }

// Returns the class weights in a shape that broadcasts against the scores; null if there are none.
const Node* ClassWeights(Builder& b, Operands x) {
  if (x.size() < 3) return nullptr;
  Shape shape(x[0]->shape().size(), 1);
  shape[ClassAxis(x[0])] = x[2]->shape()[0];
  return b.Reshape(b.Cast(x[2], x[0]->dtype()), shape);
}

// A loss per label, and the divisor for "mean": null if it is the number of labels.
struct Losses {
  const Node* values;
  const Node* divisor;
};

Expansion Reduce(Builder& b, const Losses& losses, const Attributes& attributes) {
  // The sum of no losses would be 0; the mean of nothing is NaN.
  const bool is_empty = ir::NumElements(losses.values->shape()) == 0;
  if (losses.divisor == nullptr || is_empty || StringOf(attributes, "reduction") != "mean") {
    return ReduceLoss(b, losses.values, attributes);
  }
  // Divides each loss and not their sum, so that each gradient is known before all losses are: then
  // one kernel computes both.
  const Node* parts = b.Mul(losses.values, b.Reciprocal(losses.divisor));
  return b.Sum(parts, NormalizeAxes({}, parts->shape().size()).value());
}

// -log_probabilities[label] for each label, mixed with `smoothing` parts of the mean over all
// classes. A comparison with the class number selects it, which fuses with the computation of the
// log probabilities and whose gradient needs no scatter.
Losses OfLabels(Builder& b, const Node* log_probabilities, Operands x, const Attributes& attributes,
                double smoothing) {
  const Node* labels = x[1];
  const DType dtype = log_probabilities->dtype();
  const Node* zero = b.Const(dtype, 0);
  const int64_t axis = ClassAxis(log_probabilities);
  const int64_t ignored = IntOf(attributes, "ignore_index");
  const Node* weights = ClassWeights(b, x);
  const Node* is_label = IsClass(b, labels, log_probabilities->shape()[axis], axis);
  const Node* weighted = weights == nullptr ? log_probabilities : b.Mul(log_probabilities, weights);
  const Node* picked = b.Sum(b.Where(is_label, weighted, zero), {axis});
  Losses losses = {b.Mul(picked, -(1 - smoothing)), nullptr};
  if (smoothing > 0) {
    const auto classes = static_cast<double>(log_probabilities->shape()[axis]);
    losses.values = b.Sub(losses.values, b.Mul(b.Sum(weighted, {axis}), smoothing / classes));
  }
  const Node* counts = nullptr;  // each label's contribution to the divisor
  if (weights != nullptr) counts = b.Sum(b.Where(is_label, weights, zero), {axis});
  // Cast to a dtype that cannot hold it, ignore_index would equal another label.
  if (CanBe(labels->dtype(), ignored)) {
    const Node* skip = b.Equal(labels, b.ConstInt(labels->dtype(), ignored));
    losses.values = b.Where(skip, zero, losses.values);
    counts = b.Where(skip, zero, counts == nullptr ? b.Const(dtype, 1) : counts);
  }
  if (counts != nullptr) {
    losses.divisor = b.Sum(counts, NormalizeAxes({}, counts->shape().size()).value());
  }
  return losses;
}

// Cross entropy with probabilities, mixed with the uniform distribution by `smoothing`.
Losses OfProbabilities(Builder& b, const Node* log_probabilities, Operands x, double smoothing) {
  const int64_t axis = ClassAxis(log_probabilities);
  const auto classes = static_cast<double>(log_probabilities->shape()[axis]);
  const Node* target = b.Cast(x[1], log_probabilities->dtype());
  if (smoothing > 0) target = b.Add(b.Mul(target, 1 - smoothing), smoothing / classes);
  const Node* terms = b.Mul(log_probabilities, target);
  if (const Node* weights = ClassWeights(b, x)) terms = b.Mul(terms, weights);
  return {b.Neg(b.Sum(terms, {axis})), nullptr};
}

Expansion ExpandNll(Builder& b, Operands x, const Attributes& attributes) {
  return Reduce(b, OfLabels(b, x[0], x, attributes, 0), attributes);
}

Expansion ExpandCrossEntropy(Builder& b, Operands x, const Attributes& attributes) {
  const double smoothing = FloatOf(attributes, "label_smoothing");
  const Node* log_probabilities = LogSoftmax(b, x[0], ClassAxis(x[0]));
  if (ir::IsFloat(x[1]->dtype())) {
    return Reduce(b, OfProbabilities(b, log_probabilities, x, smoothing), attributes);
  }
  return Reduce(b, OfLabels(b, log_probabilities, x, attributes, smoothing), attributes);
}

constexpr Rule kLabelLossShape = {"label_loss", "scores, labels, weight?", R"rule(
  check len(scores) > 0: '"{op.name}" of scores without a class dimension'
  axis = 1 if len(scores) > 1 else 0
  wanted = scores[:axis] + scores[axis + 1:]
  check labels == wanted or labels == scores:
    "labels of shape {labels} for scores of shape {scores}; they must have shape {wanted}"
  classes = scores[axis:axis + 1]
  check not given(weight) or weight == classes:
    "class weights of shape {weight} for scores of shape {scores}; they must have shape {classes}"
  none = attributes["reduction"] == "none"
  -> wanted if none else ()
)rule"};

constexpr Rule kIndexLabelsRule = {"index_labels", "scores, labels", R"rule(
  check dtypes[1].is_integer and len(labels) + 1 == len(scores):
    "labels of {dtypes[1].name}{labels} for scores of shape {scores}; labels are integers without "
    "the class dimension"
)rule"};

constexpr Rule kLabelsRule = {"labels", "scores, labels", R"rule(
  are_indices = dtypes[1].is_integer and len(labels) + 1 == len(scores)
  check are_indices or (dtypes[1].is_float and labels == scores):
    "labels of {dtypes[1].name}{labels} for scores of shape {scores}; labels are integers without "
    "the class dimension, probabilities floats with it"
)rule"};

OpDef LabelLoss(std::string_view name, std::string_view scores, DTypeClass label_class, Rule labels,
                std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {scores, "labels", "weight?"}, DTypeRule::kSame, DTypeClass::kFloat,
                        expand, doc);
  row.attributes = std::move(attributes);
  row.attributes.push_back(OptionalInt("ignore_index", -100));
  row.attributes.push_back(Reduction());
  row.shape_rule = kLabelLossShape;
  row.special_operand = 1;
  row.special_class = label_class;
  row.constraints = {labels};
  return row;
}

}  // namespace

std::vector<OpDef> LabelLossComposites() {
  return {
      LabelLoss("cross_entropy", "logits", DTypeClass::kNumeric, kLabelsRule,
                {Fraction(OptionalFloat("label_smoothing", 0))}, ExpandCrossEntropy,
                "-log(softmax(logits))[label], times the class's weight; classes are dimension 1. "
                "Labels may be probabilities of the logits' shape. The mean is over the weights of "
                "labels that are not ignore_index; a label out of range adds 0"),
      LabelLoss("nll_loss", "log_probabilities", DTypeClass::kInteger, kIndexLabelsRule, {},
                ExpandNll,
                "-log_probabilities[label], times the class's weight; otherwise as cross_entropy"),
  };
}

}  // namespace kiln::ops
