// Convolution and pooling over the last two dimensions: sliding windows are views, so nothing is
// copied or padded in memory.
#include <limits>

#include "compiler/ops/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

struct Sliding {
  std::vector<int64_t> size, stride, padding, dilation;  // two each: height, width
};

// Zeros around the last two dimensions.
const Node* PadPlane(Builder& b, const Node* x, const std::vector<int64_t>& padding) {
  std::vector<int64_t> pads(2 * x->shape().size(), 0);
  for (int i = 0; i < 4; ++i) pads[pads.size() - 4 + i] = padding[i / 2];
  return b.Pad(x, pads);
}

// (…, H, W) to (…, OH, OW, KH, KW); x is padded already.
const Node* Windows(Builder& b, const Node* x, const Sliding& sliding) {
  const auto rank = static_cast<int64_t>(x->shape().size());
  const Node* rows = b.Window(x, rank - 2, sliding.size[0], sliding.stride[0], sliding.dilation[0]);
  return b.Window(rows, rank - 1, sliding.size[1], sliding.stride[1], sliding.dilation[1]);
}

// Over (N, G, O/G, OH, OW, C/G, KH, KW), summed over the last three.
Expansion ExpandConv2d(Builder& b, Operands operands, const Attributes& attributes) {
  const Shape& weight = operands[1]->shape();
  const int64_t groups = IntOf(attributes, "groups");
  const Sliding sliding = {{weight[2], weight[3]},
                           IntsOf(attributes, "stride"),
                           IntsOf(attributes, "padding"),
                           IntsOf(attributes, "dilation")};
  const Node* windows = Windows(b, PadPlane(b, operands[0], sliding.padding), sliding);
  const Shape& w = windows->shape();  // N, C, OH, OW, KH, KW
  const int64_t inner = w[1] / groups;
  const Node* grouped = b.Reshape(windows, {w[0], groups, 1, inner, w[2], w[3], w[4], w[5]});
  const Node* data = b.Permute(grouped, {0, 1, 2, 4, 5, 3, 6, 7});
  const Node* kernel =
      b.Reshape(operands[1], {1, groups, weight[0] / groups, 1, 1, inner, weight[2], weight[3]});
  const Node* sum = b.Sum(b.Mul(data, kernel), {5, 6, 7});
  const Node* result = b.Reshape(sum, {w[0], weight[0], w[2], w[3]});
  if (operands.size() == 2) return result;
  return b.Add(result, b.Reshape(operands[2], {1, weight[0], 1, 1}));
}

Sliding PoolOf(const Attributes& attributes) {
  const std::vector<int64_t>& size = IntsOf(attributes, "kernel");
  const std::vector<int64_t>& stride = IntsOf(attributes, "stride");
  return {size, stride.empty() ? size : stride, IntsOf(attributes, "padding"), {1, 1}};
}

// Padding must never win, so it becomes the lowest value by a mask that is padded in the same way.
Expansion ExpandMaxPool2d(Builder& b, Operands operands, const Attributes& attributes) {
  const Sliding sliding = PoolOf(attributes);
  const Node* x = operands[0];
  const Node* padded = PadPlane(b, x, sliding.padding);
  if (padded != x) {
    const Node* inside = PadPlane(b, b.Full(DType::kBool, x->shape(), 1), sliding.padding);
    const double lowest = -std::numeric_limits<double>::infinity();
    padded = b.Where(inside, padded, b.Const(x->dtype(), lowest));
  }
  return b.Max(Windows(b, padded, sliding), {-2, -1});
}

Expansion ExpandAvgPool2d(Builder& b, Operands operands, const Attributes& attributes) {
  const Sliding sliding = PoolOf(attributes);
  const Node* windows = Windows(b, PadPlane(b, operands[0], sliding.padding), sliding);
  const double count = static_cast<double>(sliding.size[0] * sliding.size[1]);
  return b.Mul(b.Sum(windows, {-2, -1}), 1.0 / count);
}

OpDef Pool(std::string_view name, DTypeRule dtype_rule, DTypeClass operand_class, ExpandFn expand,
           std::string_view doc) {
  OpDef row = Composite(name, {"x"}, dtype_rule, operand_class, expand, doc);
  row.attributes = {RequiredInts("kernel"), OptionalInts("stride", {}),
                    OptionalInts("padding", {0, 0})};
  row.shape_rule = ShapeRule::kPool2d;
  return row;
}

}  // namespace

std::vector<OpDef> ConvolutionComposites() {
  OpDef conv2d = Composite("conv2d", {"x", "weight", "bias?"}, DTypeRule::kPromote,
                           DTypeClass::kNumeric, ExpandConv2d,
                           "Cross-correlation of x (N, C, H, W) with weight (O, C / groups, KH, "
                           "KW), as PyTorch's conv2d");
  conv2d.attributes = {OptionalInts("stride", {1, 1}), OptionalInts("padding", {0, 0}),
                       OptionalInts("dilation", {1, 1}), OptionalInt("groups", 1)};
  conv2d.shape_rule = ShapeRule::kConv2d;
  return {
      std::move(conv2d),
      Pool("max_pool2d", DTypeRule::kSame, DTypeClass::kNumeric, ExpandMaxPool2d,
           "The largest of each window; padding never wins, equal ones share the gradient equally"),
      Pool("avg_pool2d", DTypeRule::kPromoteFloat, DTypeClass::kAny, ExpandAvgPool2d,
           "The mean of each window; padding counts as zeros"),
  };
}

}  // namespace kiln::ops
