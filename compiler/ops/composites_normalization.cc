// Normalisations of neural networks.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composite.h"
#include "compiler/ops/infer.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;

const Node* Rsqrt(Builder& b, const Node* x) { return b.Reciprocal(b.Sqrt(x)); }

// The last `count` axes of x.
absl::StatusOr<std::vector<int64_t>> LastAxes(const Node* x, int64_t count) {
  const auto rank = static_cast<int64_t>(x->shape().size());
  if (count < 1 || count > rank) {
    return absl::InvalidArgumentError(StrCat("\"axes\" is ", count, " for a tensor of shape ",
                                             ToString(x->shape()), "; it must be 1 to ", rank));
  }
  std::vector<int64_t> axes;
  for (int64_t i = rank - count; i < rank; ++i) axes.push_back(i);
  return axes;
}

// Weight and bias must have x's shape over the normalised axes.
absl::Status CheckAffine(Operands operands, size_t count) {
  const Shape& x = operands[0]->shape();
  const Shape wanted(x.end() - static_cast<int64_t>(count), x.end());
  for (const Node* operand : operands.subspan(1)) {
    if (operand->shape() == wanted) continue;
    return absl::InvalidArgumentError(StrCat("a weight or bias of shape ",
                                             ToString(operand->shape()), "; it must be ",
                                             ToString(wanted)));
  }
  return absl::OkStatus();
}

Expansion ExpandLayerNorm(Builder& b, Operands x, const Attributes& attributes) {
  const auto axes = LastAxes(x[0], IntOf(attributes, "axes"));
  if (!axes.ok()) return axes.status();
  const absl::Status affine = CheckAffine(x, axes->size());
  if (!affine.ok()) return affine;
  const Node* centered = b.Sub(x[0], Mean(b, x[0], *axes, true));
  const Node* variance = Mean(b, b.Mul(centered, centered), *axes, true);
  const Node* result = b.Mul(centered, Rsqrt(b, b.Add(variance, FloatOf(attributes, "epsilon"))));
  if (x.size() > 1) result = b.Mul(result, x[1]);
  return x.size() > 2 ? b.Add(result, x[2]) : result;
}

Expansion ExpandRmsNorm(Builder& b, Operands x, const Attributes& attributes) {
  const auto axes = LastAxes(x[0], IntOf(attributes, "axes"));
  if (!axes.ok()) return axes.status();
  const absl::Status affine = CheckAffine(x, axes->size());
  if (!affine.ok()) return affine;
  const Node* square = Mean(b, b.Mul(x[0], x[0]), *axes, true);
  const Node* result = b.Mul(x[0], Rsqrt(b, b.Add(square, FloatOf(attributes, "epsilon"))));
  return x.size() > 1 ? b.Mul(result, x[1]) : result;
}

// Scale and shift are per channel, so they are made first and x is touched once.
Expansion ExpandBatchNorm(Builder& b, Operands x, const Attributes& attributes) {
  const Shape& shape = x[0]->shape();
  if (shape.size() < 2) {
    return absl::InvalidArgumentError(
        StrCat("batch_norm of shape ", ToString(shape), "; it must be (N, C, …)"));
  }
  Shape channel(shape.size(), 1);
  channel[1] = shape[1];
  std::vector<const Node*> statistics;
  for (const Node* operand : x.subspan(1)) {
    if (operand->shape() != Shape{shape[1]}) {
      return absl::InvalidArgumentError(
          StrCat("batch_norm's mean, var, weight or bias has "
                 "shape ",
                 ToString(operand->shape()), "; it must be ", ToString({shape[1]})));
    }
    statistics.push_back(b.Reshape(operand, channel));
  }
  const Node* scale = Rsqrt(b, b.Add(statistics[1], FloatOf(attributes, "epsilon")));
  if (statistics.size() > 2) scale = b.Mul(scale, statistics[2]);
  const Node* result = b.Mul(b.Sub(x[0], statistics[0]), scale);
  return statistics.size() > 3 ? b.Add(result, statistics[3]) : result;
}

// Each channel's weight and bias, dimension 1.
Expansion ChannelAffine(Builder& b, const Node* x, Operands affine) {
  Shape channel(x->shape().size(), 1);
  channel[1] = x->shape()[1];
  for (const Node* operand : affine) {
    if (operand->shape() == Shape{channel[1]}) continue;
    return absl::InvalidArgumentError(StrCat("a weight or bias of shape ",
                                             ToString(operand->shape()), "; it must be ",
                                             ToString({channel[1]})));
  }
  if (!affine.empty()) x = b.Mul(x, b.Reshape(affine[0], channel));
  if (affine.size() > 1) x = b.Add(x, b.Reshape(affine[1], channel));
  return x;
}

Expansion NormalizeGroups(Builder& b, Operands x, int64_t groups, double epsilon) {
  const Shape& shape = x[0]->shape();
  const int64_t in_group =
      shape[0] * groups == 0 ? 0 : ir::NumElements(shape) / (shape[0] * groups);
  const Node* rows = b.Reshape(x[0], {shape[0], groups, in_group});
  const Node* centered = b.Sub(rows, Mean(b, rows, {2}, true));
  const Node* variance = Mean(b, b.Mul(centered, centered), {2}, true);
  const Node* normal = b.Mul(centered, Rsqrt(b, b.Add(variance, epsilon)));
  return ChannelAffine(b, b.Reshape(normal, shape), x.subspan(1));
}

absl::Status CheckChannels(std::string_view op, const Node* x, size_t least) {
  if (x->shape().size() >= least) return absl::OkStatus();
  return absl::InvalidArgumentError(StrCat(op, " of shape ", ToString(x->shape()),
                                           "; it must be (N, C, ", least > 2 ? "spatial" : "…",
                                           ")"));
}

Expansion ExpandGroupNorm(Builder& b, Operands x, const Attributes& attributes) {
  const absl::Status fits = CheckChannels("group_norm", x[0], 2);
  if (!fits.ok()) return fits;
  const int64_t groups = IntOf(attributes, "groups");
  const int64_t channels = x[0]->shape()[1];
  if (groups < 1 || channels % groups != 0) {
    return absl::InvalidArgumentError(StrCat("group_norm of ", channels, " channels in ", groups,
                                             " groups; groups must divide the channels"));
  }
  return NormalizeGroups(b, x, groups, FloatOf(attributes, "epsilon"));
}

Expansion ExpandInstanceNorm(Builder& b, Operands x, const Attributes& attributes) {
  const absl::Status fits = CheckChannels("instance_norm", x[0], 3);
  if (!fits.ok()) return fits;
  return NormalizeGroups(b, x, x[0]->shape()[1], FloatOf(attributes, "epsilon"));
}

// x / (k + alpha * mean of x² over `size` neighbouring channels) ^ beta.
Expansion ExpandLocalResponseNorm(Builder& b, Operands x, const Attributes& attributes) {
  const absl::Status fits = CheckChannels("local_response_norm", x[0], 2);
  if (!fits.ok()) return fits;
  const int64_t size = IntOf(attributes, "size");
  if (size < 1 || size > (int64_t{1} << 32)) {
    return absl::InvalidArgumentError(
        StrCat("local_response_norm over ", size, " channels; it must be at least 1"));
  }
  if (x[0]->shape()[1] == 0) return x[0];  // the window would not fit
  std::vector<int64_t> padding(2 * x[0]->shape().size(), 0);
  padding[2] = size / 2;
  padding[3] = (size - 1) / 2;
  const Node* squares = b.Pad(b.Mul(x[0], x[0]), padding);
  if (!b.status().ok()) return b.status();
  const Node* sum = b.Sum(b.Window(squares, 1, size, 1, 1), {-1});
  const Node* base = b.Add(b.Mul(sum, FloatOf(attributes, "alpha") / static_cast<double>(size)),
                           FloatOf(attributes, "k"));
  const Node* power =
      b.Binary(ir::Op::kPow, base, b.Const(base->dtype(), FloatOf(attributes, "beta")));
  return b.Div(x[0], power);
}

OpDef Normalization(std::string_view name, std::vector<std::string_view> operands,
                    std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), DTypeRule::kPromoteFloat, DTypeClass::kFloat,
                        expand, doc);
  row.attributes = std::move(attributes);
  return row;
}

}  // namespace

std::vector<OpDef> NormalizationComposites() {
  return {
      Normalization("layer_norm", {"x", "weight?", "bias?"},
                    {OptionalInt("axes", 1), OptionalFloat("epsilon", 1e-5)}, ExpandLayerNorm,
                    "x less its mean over its root of variance plus epsilon, over the last axes, "
                    "times weight plus bias (Ba et al., 2016)"),
      Normalization("rms_norm", {"x", "weight?"},
                    {OptionalInt("axes", 1), OptionalFloat("epsilon", 1e-6)}, ExpandRmsNorm,
                    "x over the root of its mean square plus epsilon, over the last axes, times "
                    "weight (Zhang and Sennrich, 2019)"),
      Normalization("batch_norm", {"x", "mean", "var", "weight?", "bias?"},
                    {OptionalFloat("epsilon", 1e-5)}, ExpandBatchNorm,
                    "(x - mean) / sqrt(var + epsilon) * weight + bias for each channel, dimension "
                    "1; in training mean and var (correction 0) are the batch's own (Ioffe and "
                    "Szegedy, 2015)"),
      Normalization("group_norm", {"x", "weight?", "bias?"},
                    {RequiredInt("groups"), OptionalFloat("epsilon", 1e-5)}, ExpandGroupNorm,
                    "x (N, C, …) less its mean over its root of variance plus epsilon, over each "
                    "group of channels, times each channel's weight plus bias (Wu and He, 2018)"),
      Normalization("instance_norm", {"x", "weight?", "bias?"}, {OptionalFloat("epsilon", 1e-5)},
                    ExpandInstanceNorm,
                    "group_norm with a group for each channel (Ulyanov et al., 2016)"),
      Normalization("local_response_norm", {"x"},
                    {RequiredInt("size"), OptionalFloat("alpha", 1e-4), OptionalFloat("beta", 0.75),
                     OptionalFloat("k", 1)},
                    ExpandLocalResponseNorm,
                    "x over (k + alpha * the mean of x² over size neighbouring channels)^beta "
                    "(Krizhevsky et al., 2012), as PyTorch's"),
  };
}

}  // namespace kiln::ops
