// Convolution over any number of spatial dimensions, and its transpose: sliding windows are views,
// so nothing is copied or padded in memory.
#include <algorithm>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/windows.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;
using Ints = std::vector<int64_t>;

Shape Joined(std::initializer_list<absl::Span<const int64_t>> parts) {
  Shape result;
  for (const auto& part : parts) result.insert(result.end(), part.begin(), part.end());
  return result;
}

// Adds one number per channel, dimension 1.
const Node* AddBias(Builder& b, const Node* x, Operands operands, size_t rank) {
  if (operands.size() < 3) return x;
  return b.Add(x, b.Reshape(operands[2], Joined({{1, x->shape()[1]}, Shape(rank, 1)})));
}

// Sums over the last dimensions of (N, G, O/G, positions, C/G, taps): one sum of one product, which
// the compiler recognises as a contraction.
Expansion ExpandConv(Builder& b, Operands operands, const Attributes& attributes) {
  const Shape& weight = operands[1]->shape();
  const size_t rank = weight.size() - 2;
  const auto spatial = static_cast<int64_t>(rank);
  const int64_t groups = IntOf(attributes, "groups");
  const Shape kernel_shape = SpatialOf(weight, rank);
  const Sliding sliding =
      ConvolutionSliding(SpatialOf(operands[0]->shape(), rank), kernel_shape, attributes).value();
  const Node* windows = Windows(b, PadSpatial(b, operands[0], sliding), sliding);
  const Shape& w = windows->shape();  // N, C, positions, taps
  const int64_t inner = w[1] / groups;
  const Node* grouped =
      b.Reshape(windows, Joined({{w[0], groups, 1, inner}, sliding.positions, kernel_shape}));
  // From (N, G, 1, C/G, positions, taps): moves the channels after the positions.
  Ints order = {0, 1, 2};
  for (int64_t i = 0; i < spatial; ++i) order.push_back(4 + i);
  order.push_back(3);
  for (int64_t i = 0; i < spatial; ++i) order.push_back(4 + spatial + i);
  const Node* data = b.Permute(grouped, order);
  const Node* kernel =
      b.Reshape(operands[1],
                Joined({{1, groups, weight[0] / groups}, Shape(rank, 1), {inner}, kernel_shape}));
  Ints summed;
  for (int64_t i = 0; i <= spatial; ++i) summed.push_back(3 + spatial + i);
  const Node* sum = b.Sum(b.Mul(data, kernel), summed);
  const Node* result = b.Reshape(sum, Joined({{w[0], weight[0]}, sliding.positions}));
  return AddBias(b, result, operands, rank);
}

// Crops the convolution's padding; output_padding adds to the end.
const Node* Crop(Builder& b, const Node* x, const Spreading& spreading) {
  const size_t skipped = x->shape().size() - spreading.lengths.size();
  Ints bounds;
  Ints padding(2 * skipped, 0);
  for (size_t i = 0; i < skipped; ++i) bounds.insert(bounds.end(), {0, x->shape()[i]});
  for (size_t i = 0; i < spreading.lengths.size(); ++i) {
    const int64_t begin = spreading.windows.before[i];
    const int64_t wanted = begin + spreading.result[i];
    const int64_t end = std::min(wanted, spreading.lengths[i]);
    bounds.insert(bounds.end(), {begin, end});
    padding.insert(padding.end(), {0, wanted - end});
  }
  return b.Pad(b.Shrink(x, bounds), padding);
}

// The adjoint of ExpandConv with respect to x, in the form of its gradient: products summed over
// the channels, moved to the positions of their window elements, and added up.
Expansion ExpandConvTranspose(Builder& b, Operands operands, const Attributes& attributes) {
  const Shape& x = operands[0]->shape();
  const Shape& weight = operands[1]->shape();
  const size_t rank = weight.size() - 2;
  const int64_t groups = IntOf(attributes, "groups");
  const int64_t inner = x[1] / groups;
  const int64_t outer = weight[1];
  const Shape positions = SpatialOf(x, rank);
  const Shape taps = SpatialOf(weight, rank);
  const Shape ones(rank, 1);
  const Spreading spreading = TransposedSpreading(positions, taps, attributes).value();
  const Node* data = b.Reshape(operands[0], Joined({{x[0], groups, 1, inner}, positions, ones}));
  const Node* kernel =
      b.Transpose(b.Reshape(operands[1], Joined({{1, groups, inner, outer}, ones, taps})), 2, 3);
  const Node* result = b.Sum(b.Mul(data, kernel), {3});  // N, G, O/G, positions, taps
  // From the last dimension on: unwindow takes its window from the end of the shape.
  for (size_t i = rank; i-- > 0;) {
    const auto axis = static_cast<int64_t>(3 + i);
    const Sliding& windows = spreading.windows;
    result = b.Sum(
        b.Unwindow(result, axis, spreading.lengths[i], windows.stride[i], windows.dilation[i]),
        {-1});
  }
  result = b.Reshape(result, Joined({{x[0], groups * outer}, spreading.lengths}));
  return AddBias(b, Crop(b, result, spreading), operands, rank);
}

constexpr Rule kConvShape = {"conv", "x, weight, bias?", R"rule(
  rank = spatial_rank(op)
  check len(x) == rank + 2 and len(weight) == rank + 2:
    '"{op.name}" of x {x} and weight {weight}; both must have {rank + 2} dimensions: x batch, '
    "channels and {rank} spatial ones"
  groups = attributes["groups"]
  check groups >= 1 and x[1] % groups == 0 and weight[0] % groups == 0:
    '"{op.name}" in {groups} groups with {x[1]} channels in and {weight[0]} out; groups must '
    "divide both"
  check weight[1] == x[1] // groups:
    '"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension 1 must '
    "be {x[1] // groups}"
  check not given(bias) or bias == weight[:1]:
    '"{op.name}" with a bias of shape {bias}; it must be {weight[:1]}'
  -> (x[0], weight[0]) + convolution_positions(x[2:], weight[2:], attributes)
)rule"};

constexpr Rule kConvTransposeShape = {"conv_transpose", "x, weight, bias?", R"rule(
  rank = spatial_rank(op)
  check len(x) == rank + 2 and len(weight) == rank + 2:
    '"{op.name}" of x {x} and weight {weight}; both must have {rank + 2} dimensions: x batch, '
    "channels and {rank} spatial ones"
  groups = attributes["groups"]
  check weight[0] == x[1] and groups >= 1 and x[1] % groups == 0:
    '"{op.name}" of x {x} and weight {weight} in {groups} groups: the weight\'s dimension 0 must '
    "be x's channels ({x[1]}), and groups divide them"
  channels = (weight[1] * groups,)
  check not given(bias) or bias == channels:
    '"{op.name}" with a bias of shape {bias}; it must be {channels}'
  -> x[:1] + channels + transposed_sizes(x[2:], weight[2:], attributes)
)rule"};

OpDef Convolution(std::string_view name, size_t rank, std::string_view doc) {
  OpDef row = Composite(name, {"x", "weight", "bias?"}, DTypeRule::kPromote, DTypeClass::kNumeric,
                        ExpandConv, doc);
  row.attributes = {OptionalInts("stride", Ints(rank, 1)), OptionalInts("padding", Ints(rank, 0)),
                    OptionalInts("dilation", Ints(rank, 1)), OptionalInt("groups", 1)};
  row.shape_rule = kConvShape;
  return row;
}

OpDef Transposed(std::string_view name, size_t rank, std::string_view doc) {
  OpDef row = Convolution(name, rank, doc);
  row.attributes.push_back(OptionalInts("output_padding", Ints(rank, 0)));
  row.shape_rule = kConvTransposeShape;
  row.expand = ExpandConvTranspose;
  return row;
}

}  // namespace

std::vector<OpDef> ConvolutionComposites() {
  return {
      Convolution("conv1d", 1,
                  "Cross-correlation of x (N, C, L) with weight (O, C / groups, K), as PyTorch's"),
      Convolution("conv2d", 2,
                  "Cross-correlation of x (N, C, H, W) with weight (O, C / groups, KH, KW), as "
                  "PyTorch's"),
      Convolution("conv3d", 3,
                  "Cross-correlation of x (N, C, D, H, W) with weight (O, C / groups, KD, KH, KW), "
                  "as PyTorch's"),
      Transposed("conv_transpose1d", 1,
                 "The adjoint of conv1d in x: x (N, C, L), weight (C, O / groups, K)"),
      Transposed("conv_transpose2d", 2,
                 "The adjoint of conv2d in x: x (N, C, H, W), weight (C, O / groups, KH, KW)"),
      Transposed("conv_transpose3d", 3,
                 "The adjoint of conv3d in x: x (N, C, D, H, W), weight (C, O / groups, KD, KH, "
                 "KW)"),
  };
}

}  // namespace kiln::ops
