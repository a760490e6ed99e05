// unfold and fold (windows as columns and back), and pixel shuffling: views, and fold's sum.
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/composites/windows.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/sliding.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Shape;
using Ints = std::vector<int64_t>;

// Exchanges the two lists of `rank` dimensions of (N, C, first…, second…).
const Node* ExchangeHalves(Builder& b, const Node* x, size_t rank) {
  const auto half = static_cast<int64_t>(rank);
  Ints order = {0, 1};
  for (int64_t i = 0; i < half; ++i) order.push_back(2 + half + i);
  for (int64_t i = 0; i < half; ++i) order.push_back(2 + i);
  return b.Permute(x, order);
}

Expansion ExpandUnfold(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const Ints& kernel = IntsOf(attributes, "kernel");
  const Sliding sliding =
      ConvolutionSliding(SpatialOf(x->shape(), kernel.size()), kernel, attributes).value();
  // (N, C, positions…, taps…); the columns need the taps first.
  const Node* windows = Windows(b, PadSpatial(b, x, sliding), sliding);
  return b.Reshape(
      ExchangeHalves(b, windows, kernel.size()),
      {x->shape()[0], x->shape()[1] * ir::NumElements(kernel), ir::NumElements(sliding.positions)});
}

Expansion ExpandFold(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const Ints& kernel = IntsOf(attributes, "kernel");
  const Ints& size = IntsOf(attributes, "size");
  const Sliding sliding = ConvolutionSliding(size, kernel, attributes).value();
  Shape shape = {x->shape()[0], x->shape()[1] / ir::NumElements(kernel)};
  shape.insert(shape.end(), kernel.begin(), kernel.end());
  shape.insert(shape.end(), sliding.positions.begin(), sliding.positions.end());
  const Node* result = ExchangeHalves(b, b.Reshape(x, shape), kernel.size());
  // (N, C, positions…, taps…): unwindow takes its window from the end of the shape.
  Ints bounds = {0, shape[0], 0, shape[1]};
  for (size_t i = kernel.size(); i-- > 0;) {
    const int64_t length = size[i] + sliding.before[i] + sliding.after[i];
    result = b.Sum(b.Unwindow(result, static_cast<int64_t>(2 + i), length, sliding.stride[i],
                              sliding.dilation[i]),
                   {-1});
  }
  for (size_t i = 0; i < kernel.size(); ++i) {
    bounds.insert(bounds.end(), {sliding.before[i], sliding.before[i] + size[i]});
  }
  return b.Shrink(result, bounds);
}

// Reshapes the last three dimensions to five, permutes them, and reshapes to three.
const Node* Rearranged(Builder& b, const Node* x, const std::vector<int64_t>& five,
                       const std::vector<int64_t>& order, const std::vector<int64_t>& three) {
  const Shape leading(x->shape().begin(), x->shape().end() - 3);
  const auto skipped = static_cast<int64_t>(leading.size());
  Shape shape = leading;
  shape.insert(shape.end(), five.begin(), five.end());
  Ints axes;
  for (int64_t i = 0; i < skipped; ++i) axes.push_back(i);
  for (const int64_t axis : order) axes.push_back(skipped + axis);
  Shape result = leading;
  result.insert(result.end(), three.begin(), three.end());
  return b.Reshape(b.Permute(b.Reshape(x, shape), axes), result);
}

Expansion ExpandPixelShuffle(Builder& b, Operands x, const Attributes& attributes) {
  const Shape& shape = x[0]->shape();
  const int64_t f = IntOf(attributes, "factor");
  const int64_t channels = shape[shape.size() - 3] / (f * f);
  const int64_t height = shape[shape.size() - 2];
  const int64_t width = shape.back();
  // (C, f, f, H, W) to (C, H, f, W, f).
  return Rearranged(b, x[0], {channels, f, f, height, width}, {0, 3, 1, 4, 2},
                    {channels, height * f, width * f});
}

Expansion ExpandPixelUnshuffle(Builder& b, Operands x, const Attributes& attributes) {
  const Shape& shape = x[0]->shape();
  const int64_t f = IntOf(attributes, "factor");
  const int64_t channels = shape[shape.size() - 3];
  const int64_t height = shape[shape.size() - 2] / f;
  const int64_t width = shape.back() / f;
  // (C, H, f, W, f) to (C, f, f, H, W).
  return Rearranged(b, x[0], {channels, height, f, width, f}, {0, 2, 4, 1, 3},
                    {channels * f * f, height, width});
}

OpDef Rearranging(std::string_view name, DTypeClass operand_class, Rule rule,
                  std::vector<AttributeDef> attributes, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"x"}, DTypeRule::kSame, operand_class, expand, doc);
  row.attributes = std::move(attributes);
  row.shape_rule = rule;
  return row;
}

constexpr Rule kUnfoldShape = {"unfold", "x", R"rule(
  kernel = attributes["kernel"]
  check len(kernel) > 0 and len(x) == len(kernel) + 2:
    "unfold of shape {x} with a kernel of {len(kernel)} dimensions; x must be (N, C, and as many "
    "spatial ones)"
  positions = convolution_positions(x[2:], kernel, attributes)
  -> (x[0], x[1] * prod(kernel), prod(positions))
)rule"};

constexpr Rule kFoldShape = {"fold", "x", R"rule(
  kernel = attributes["kernel"]
  size = attributes["size"]
  check len(x) == 3 and len(kernel) > 0 and len(size) == len(kernel):
    "fold of shape {x} with a kernel of {len(kernel)} and a size of {len(size)} dimensions; x must "
    "be (N, C * taps, windows), the others agree"
  positions = convolution_positions(check_shape(size), kernel, attributes)
  check x[1] % prod(kernel) == 0 and x[2] == prod(positions):
    "fold of shape {x} to {size}: dimension 1 must be a multiple of {prod(kernel)}, the kernel's "
    "elements, and dimension 2 be {prod(positions)}, the kernel's positions"
  -> (x[0], x[1] // prod(kernel)) + size
)rule"};

constexpr Rule kPixelShuffleShape = {"pixel_shuffle", "x", R"rule(
  factor = attributes["factor"]
  check len(x) >= 3 and 1 <= factor <= 1048576:
    '"{op.name}" of shape {x} by {factor}; x must be (…, C, H, W) and the factor at least 1'
  check x[-3] % (factor * factor) == 0:
    "pixel_shuffle by {factor} of {x[-3]} channels; they must be a multiple of {factor * factor}"
  -> x[:-3] + (x[-3] // (factor * factor), x[-2] * factor, x[-1] * factor)
)rule"};

constexpr Rule kPixelUnshuffleShape = {"pixel_unshuffle", "x", R"rule(
  factor = attributes["factor"]
  check len(x) >= 3 and 1 <= factor <= 1048576:
    '"{op.name}" of shape {x} by {factor}; x must be (…, C, H, W) and the factor at least 1'
  check x[-2] % factor == 0 and x[-1] % factor == 0:
    "pixel_unshuffle by {factor} of {x[-2]} x {x[-1]} pixels; both must be multiples of it"
  -> x[:-3] + (x[-3] * factor * factor, x[-2] // factor, x[-1] // factor)
)rule"};

}  // namespace

std::vector<OpDef> FoldComposites() {
  const std::vector<AttributeDef> windows = {RequiredInts("kernel"), OptionalInts("stride", {1, 1}),
                                             OptionalInts("padding", {0, 0}),
                                             OptionalInts("dilation", {1, 1})};
  std::vector<AttributeDef> sized = {RequiredInts("size")};
  sized.insert(sized.end(), windows.begin(), windows.end());
  return {
      Rearranging("unfold", DTypeClass::kAny, kUnfoldShape, windows, ExpandUnfold,
                  "Every window of x (N, C, spatial) as a column: (N, C * taps, windows)"),
      Rearranging("fold", DTypeClass::kNumeric, kFoldShape, sized, ExpandFold,
                  "The adjoint of unfold: columns added up where they came from"),
      Rearranging("pixel_shuffle", DTypeClass::kAny, kPixelShuffleShape, {RequiredInt("factor")},
                  ExpandPixelShuffle, "(…, C f², H, W) to (…, C, H f, W f) (Shi et al., 2016)"),
      Rearranging("pixel_unshuffle", DTypeClass::kAny, kPixelUnshuffleShape,
                  {RequiredInt("factor")}, ExpandPixelUnshuffle, "The inverse of pixel_shuffle"),
  };
}

}  // namespace kiln::ops
