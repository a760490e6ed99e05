// Normalisations of neural networks.
#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;

const Node* Rsqrt(Builder& b, const Node* x) { return b.Reciprocal(b.Sqrt(x)); }

// Returns the last axes of x; the attribute "axes" is their number.
std::vector<int64_t> LastAxes(const Node* x, const Attributes& attributes) {
  const auto rank = static_cast<int64_t>(x->shape().size());
  std::vector<int64_t> axes;
  for (int64_t i = rank - IntOf(attributes, "axes"); i < rank; ++i) axes.push_back(i);
  return axes;
}

Expansion ExpandLayerNorm(Builder& b, Operands x, const Attributes& attributes) {
  const std::vector<int64_t> axes = LastAxes(x[0], attributes);
  const Node* centered = b.Sub(x[0], Mean(b, x[0], axes, true));
  // The mean of squares minus the square of the mean would cancel where x is far from 0.
  const Node* variance = Mean(b, b.Mul(centered, centered), axes, true);
  const Node* result = b.Mul(centered, Rsqrt(b, b.Add(variance, FloatOf(attributes, "epsilon"))));
  if (x.size() > 1) result = b.Mul(result, x[1]);
  return x.size() > 2 ? b.Add(result, x[2]) : result;
}

Expansion ExpandRmsNorm(Builder& b, Operands x, const Attributes& attributes) {
  const std::vector<int64_t> axes = LastAxes(x[0], attributes);
  const Node* square = Mean(b, b.Mul(x[0], x[0]), axes, true);
  const Node* result = b.Mul(x[0], Rsqrt(b, b.Add(square, FloatOf(attributes, "epsilon"))));
  return x.size() > 1 ? b.Mul(result, x[1]) : result;
}

// Scale and shift are per channel, so they are computed first and x is read once.
Expansion ExpandBatchNorm(Builder& b, Operands x, const Attributes& attributes) {
  const Shape& shape = x[0]->shape();
  Shape channel(shape.size(), 1);
  channel[1] = shape[1];
  std::vector<const Node*> statistics;
  for (const Node* operand : x.subspan(1)) statistics.push_back(b.Reshape(operand, channel));
  const Node* scale = Rsqrt(b, b.Add(statistics[1], FloatOf(attributes, "epsilon")));
  if (statistics.size() > 2) scale = b.Mul(scale, statistics[2]);
  const Node* result = b.Mul(b.Sub(x[0], statistics[0]), scale);
  return statistics.size() > 3 ? b.Add(result, statistics[3]) : result;
}

// Applies each channel's weight and bias; channels are dimension 1.
Expansion ChannelAffine(Builder& b, const Node* x, Operands affine) {
  Shape channel(x->shape().size(), 1);
  channel[1] = x->shape()[1];
  if (!affine.empty()) x = b.Mul(x, b.Reshape(affine[0], channel));
  if (affine.size() > 1) x = b.Add(x, b.Reshape(affine[1], channel));
  return x;
}

Expansion NormalizeGroups(Builder& b, Operands x, int64_t groups, double epsilon) {
  const Shape& shape = x[0]->shape();
  // Without a batch or without groups, avoids a division by zero.
  const int64_t in_group =
      shape[0] * groups == 0 ? 0 : ir::NumElements(shape) / (shape[0] * groups);
  // A group's channels are adjacent in memory, so each group is one row.
  const Node* rows = b.Reshape(x[0], {shape[0], groups, in_group});
  const Node* centered = b.Sub(rows, Mean(b, rows, {2}, true));
  const Node* variance = Mean(b, b.Mul(centered, centered), {2}, true);
  const Node* normal = b.Mul(centered, Rsqrt(b, b.Add(variance, epsilon)));
  return ChannelAffine(b, b.Reshape(normal, shape), x.subspan(1));
}

Expansion ExpandGroupNorm(Builder& b, Operands x, const Attributes& attributes) {
  return NormalizeGroups(b, x, IntOf(attributes, "groups"), FloatOf(attributes, "epsilon"));
}

Expansion ExpandInstanceNorm(Builder& b, Operands x, const Attributes& attributes) {
  return NormalizeGroups(b, x, x[0]->shape()[1], FloatOf(attributes, "epsilon"));
}

// Returns x / (k + alpha * mean of x² over `size` adjacent channels) ^ beta.
Expansion ExpandLocalResponseNorm(Builder& b, Operands x, const Attributes& attributes) {
  const int64_t size = IntOf(attributes, "size");
  const int64_t channels = x[0]->shape()[1];
  if (channels == 0) return x[0];  // the window would not fit
  // Beyond the channels there is nothing to add, so the padding is bounded by their number.
  const int64_t before = std::min(size / 2, channels);
  const int64_t after = std::min((size - 1) / 2, channels);
  std::vector<int64_t> padding(2 * x[0]->shape().size(), 0);
  padding[2] = before;
  padding[3] = after;
  const Node* squares = b.Pad(b.Mul(x[0], x[0]), padding);
  const Node* sum = b.Sum(b.Window(squares, 1, before + after + 1, 1, 1), {-1});
  const Node* base = b.Add(b.Mul(sum, FloatOf(attributes, "alpha") / static_cast<double>(size)),
                           FloatOf(attributes, "k"));
  const Node* power =
      b.Binary(ir::Op::kPow, base, b.Const(base->dtype(), FloatOf(attributes, "beta")));
  return b.Div(x[0], power);
}

OpDef Normalization(std::string_view name, std::vector<std::string_view> operands,
                    std::vector<AttributeDef> attributes, std::vector<Rule> constraints,
                    ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, std::move(operands), DTypeRule::kPromoteFloat, DTypeClass::kFloat,
                        expand, doc);
  row.attributes = std::move(attributes);
  row.constraints = std::move(constraints);
  return row;
}

constexpr Rule kLastAxesRule = {"last_axes", "x", R"rule(
  axes = attributes["axes"]
  check 1 <= axes <= len(x):
    '"axes" is {axes} for a tensor of shape {x}; it must be 1 to {len(x)}'
  wanted = x[-axes:]
  check shapes[i] == wanted for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
    "shape {wanted}"
)rule"};

constexpr Rule kChannelsRule = {"channels", "x", R"rule(
  check len(x) >= 2: '"{op.name}" of shape {x}; it must be (N, C, …)'
  wanted = x[1:2]
  check shapes[i] == wanted for i in range(1, len(shapes)):
    '"{op.name}" of {described(op, shapes, 0)} with {described(op, shapes, i)}; it must have '
    "shape {wanted}"
)rule"};

constexpr Rule kSpatialRule = {
    "spatial", "x",
    R"rule(check len(x) >= 3: '"{op.name}" of shape {x}; it must be (N, C, spatial)')rule"};

constexpr Rule kGroupsRule = {"groups", "x", R"rule(
  groups = attributes["groups"]
  check groups >= 1 and x[1] % groups == 0:
    '"{op.name}" of {x[1]} channels in {groups} groups; groups must divide the channels'
)rule"};

}  // namespace

std::vector<OpDef> NormalizationComposites() {
  return {
      Normalization("layer_norm", {"x", "weight?", "bias?"},
                    {OptionalInt("axes", 1), OptionalFloat("epsilon", 1e-5)}, {kLastAxesRule},
                    ExpandLayerNorm,
                    "x less its mean over its root of variance plus epsilon, over the last axes, "
                    "times weight plus bias (Ba et al., 2016)"),
      Normalization("rms_norm", {"x", "weight?"},
                    {OptionalInt("axes", 1), OptionalFloat("epsilon", 1e-6)}, {kLastAxesRule},
                    ExpandRmsNorm,
                    "x over the root of its mean square plus epsilon, over the last axes, times "
                    "weight (Zhang and Sennrich, 2019)"),
      Normalization("batch_norm", {"x", "mean", "var", "weight?", "bias?"},
                    {OptionalFloat("epsilon", 1e-5)}, {kChannelsRule}, ExpandBatchNorm,
                    "(x - mean) / sqrt(var + epsilon) * weight + bias for each channel, dimension "
                    "1; in training mean and var (correction 0) are the batch's own (Ioffe and "
                    "Szegedy, 2015)"),
      Normalization("group_norm", {"x", "weight?", "bias?"},
                    {RequiredInt("groups"), OptionalFloat("epsilon", 1e-5)},
                    {kChannelsRule, kGroupsRule}, ExpandGroupNorm,
                    "x (N, C, …) less its mean over its root of variance plus epsilon, over each "
                    "group of channels, times each channel's weight plus bias (Wu and He, 2018)"),
      Normalization("instance_norm", {"x", "weight?", "bias?"}, {OptionalFloat("epsilon", 1e-5)},
                    {kSpatialRule, kChannelsRule}, ExpandInstanceNorm,
                    "group_norm with a group for each channel (Ulyanov et al., 2016)"),
      Normalization("local_response_norm", {"x"},
                    {AboveZero(RequiredInt("size")), OptionalFloat("alpha", 1e-4),
                     OptionalFloat("beta", 0.75), OptionalFloat("k", 1)},
                    {kChannelsRule}, ExpandLocalResponseNorm,
                    "x over (k + alpha * the mean of x² over size neighbouring channels)^beta "
                    "(Krizhevsky et al., 2012), as PyTorch's"),
  };
}

}  // namespace kiln::ops
