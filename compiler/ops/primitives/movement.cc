// Rows of the movement ops: no arithmetic, only indices.
#include <algorithm>
#include <optional>

#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/primitives/gradients.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;
using Point = std::vector<int64_t>;
using Result = absl::StatusOr<HostTensor>;

OpDef Movement(std::string_view name, Op op, Rule shape_rule, std::vector<AttributeDef> attributes,
               GradientFn gradient, EvaluateFn evaluate, std::string_view doc) {
  return {.name = name,
          .kind = Kind::kMovement,
          .op = op,
          .operands = {"x"},
          .attributes = std::move(attributes),
          .shape_rule = shape_rule,
          .dtype_rule = DTypeRule::kSame,
          .gradient = gradient,
          .evaluate = evaluate,
          .doc = doc};
}

// Computes every element of the result from the operand's element at the point that `source`
// derives in place from the result's point; zero where `source` returns false. The point has the
// length of the longer of the two ranks, and `source` must put the operand's coordinates first.
template <typename SourceFn>
HostTensor View(const Node* node, const HostTensor& x, SourceFn source) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const std::vector<int64_t> strides = StridesOf(x.shape);
  const int64_t size = result.size();
  Point point(node->shape().size(), 0), from = point;
  for (int64_t i = 0; i < size; ++i) {
    std::copy(point.begin(), point.end(), from.begin());
    if (source(from)) {
      int64_t offset = 0;
      for (size_t d = 0; d < strides.size(); ++d) offset += from[d] * strides[d];
      CopyElement(x, offset, result, i);
    }
    for (size_t d = point.size(); d-- > 0;) {
      if (++point[d] < node->shape()[d]) break;
      point[d] = 0;
    }
  }
  return result;
}

// The same for affine views: the operand's index is `first` plus, for each dimension of the result,
// the coordinate times that dimension's step.
HostTensor AffineView(const Node* node, const HostTensor& x, int64_t first,
                      const std::vector<int64_t>& steps) {
  HostTensor result = HostTensor::Zeros(node->dtype(), node->shape());
  const ir::Shape& shape = node->shape();
  if (shape.empty()) {
    CopyElement(x, first, result, 0);
    return result;
  }
  const int64_t columns = shape.back(), rows = columns == 0 ? 0 : result.size() / columns;
  Point point(shape.size(), 0);
  int64_t from = first, to = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column)
      CopyElement(x, from + column * steps.back(), result, to++);
    for (size_t d = shape.size() - 1; d-- > 0;) {
      from += steps[d];
      if (++point[d] < shape[d]) break;
      from -= shape[d] * steps[d];
      point[d] = 0;
    }
  }
  return result;
}

constexpr Rule kReshapeShape = {"reshape", "x", R"rule(
  shape = check_shape(attributes["shape"])
  check prod(x) == prod(shape):
    "cannot reshape {x} ({prod(x)} elements) to {shape} ({prod(shape)} elements)"
  -> shape
)rule"};

constexpr Rule kPermuteShape = {"permute", "x", R"rule(
  axes = attributes["axes"]
  check tuple(sorted(axes)) == tuple(range(len(x))):
    '"axes" {axes} is not a permutation of the {len(x)} dimensions of shape {x}'
  -> tuple(x[axis] for axis in axes)
)rule"};

constexpr Rule kExpandShape = {"expand", "x", R"rule(
  shape = attributes["shape"]
  check broadcasts_to(x, shape):
    "cannot expand {x} to {shape}: from the last dimension on, sizes must be equal or 1"
  -> shape
)rule"};

constexpr Rule kShrinkShape = {"shrink", "x", R"rule(
  bounds = attributes["bounds"]
  check len(bounds) == 2 * len(x):
    '"bounds" has {len(bounds)} entries for shape {x}; it needs {2 * len(x)}: begin and end for '
    "each dimension"
  check 0 <= bounds[2 * i] <= bounds[2 * i + 1] <= x[i] for i in range(len(x)):
    "bounds [{bounds[2 * i]}, {bounds[2 * i + 1]}) of dimension {i} of shape {x}; "
    "0 <= begin <= end <= {x[i]} must hold"
  -> tuple(bounds[2 * i + 1] - bounds[2 * i] for i in range(len(x)))
)rule"};

constexpr Rule kFlipShape = {"flip", "x", R"rule(
  normalize_axes(attributes["axes"], len(x))
  -> x
)rule"};

constexpr Rule kWindowShape = {"window", "x", R"rule(
  axis = normalize_axis(attributes["axis"], len(x))
  size = attributes["size"]
  positions = window_positions(x[axis], size, attributes["stride"], attributes["dilation"])
  -> x[:axis] + (positions,) + x[axis + 1:] + (size,)
)rule"};

constexpr Rule kUnwindowShape = {"unwindow", "x", R"rule(
  check len(x) >= 2:
    "unwindow of shape {x}; it needs an axis and a last dimension, the window's"
  axis = normalize_axis(attributes["axis"], len(x) - 1)
  length = attributes["length"]
  positions = window_positions(length, x[-1], attributes["stride"], attributes["dilation"])
  check positions == x[axis]:
    "unwindow of axis {axis} of shape {x} to length {length}: that length has {positions} windows, "
    "not {x[axis]}"
  -> x[:axis] + (length,) + x[axis + 1:]
)rule"};

}  // namespace

Result EvaluateReshape(const Node* node, HostOperands operands) {
  return HostTensor{node->dtype(), node->shape(), operands[0]->bytes};
}

Result EvaluatePermute(const Node* node, HostOperands operands) {
  const std::vector<int64_t> strides = StridesOf(operands[0]->shape);
  std::vector<int64_t> steps;
  for (const int64_t axis : ir::IntsOf(node)) steps.push_back(strides[axis]);
  return AffineView(node, *operands[0], 0, steps);
}

Result EvaluateExpand(const Node* node, HostOperands operands) {
  std::vector<int64_t> steps = StridesOf(operands[0]->shape);
  for (size_t d = 0; d < steps.size(); ++d) {
    if (operands[0]->shape[d] == 1) steps[d] = 0;
  }
  return AffineView(node, *operands[0], 0, steps);
}

Result EvaluatePad(const Node* node, HostOperands operands) {
  const std::vector<int64_t>& padding = ir::IntsOf(node);
  const ir::Shape& shape = operands[0]->shape;
  return View(node, *operands[0], [&](Point& point) {
    for (size_t d = 0; d < shape.size(); ++d) {
      point[d] -= padding[2 * d];
      if (point[d] < 0 || point[d] >= shape[d]) return false;
    }
    return true;
  });
}

Result EvaluateShrink(const Node* node, HostOperands operands) {
  const std::vector<int64_t> strides = StridesOf(operands[0]->shape);
  int64_t first = 0;
  for (size_t d = 0; d < strides.size(); ++d) first += ir::IntsOf(node)[2 * d] * strides[d];
  return AffineView(node, *operands[0], first, strides);
}

Result EvaluateFlip(const Node* node, HostOperands operands) {
  std::vector<int64_t> steps = StridesOf(operands[0]->shape);
  int64_t first = 0;
  for (const int64_t axis : ir::IntsOf(node)) {
    first += (node->shape()[axis] - 1) * steps[axis];
    steps[axis] = -steps[axis];
  }
  return AffineView(node, *operands[0], first, steps);
}

Result EvaluateWindow(const Node* node, HostOperands operands) {
  const std::vector<int64_t>& window = ir::IntsOf(node);  // axis, size, stride, dilation
  std::vector<int64_t> steps = StridesOf(operands[0]->shape);
  const int64_t step = steps[window[0]];
  steps[window[0]] = step * window[2];
  steps.push_back(step * window[3]);
  return AffineView(node, *operands[0], 0, steps);
}

Result EvaluateUnwindow(const Node* node, HostOperands operands) {
  const std::vector<int64_t>& unwindow = ir::IntsOf(node);  // axis, length, stride, dilation
  const int64_t positions = operands[0]->shape[unwindow[0]];
  return View(node, *operands[0], [&](Point& point) {
    // Element k of the window at position o is the operand's element o * stride + k * dilation.
    const int64_t start = point[unwindow[0]] - point.back() * unwindow[3];
    point[unwindow[0]] = start / unwindow[2];
    return start >= 0 && start % unwindow[2] == 0 && start / unwindow[2] < positions;
  });
}

std::vector<OpDef> MovementOps() {
  const std::vector<AttributeDef> window = {RequiredInt("axis"), RequiredInt("size"),
                                            OptionalInt("stride", 1), OptionalInt("dilation", 1)};
  const std::vector<AttributeDef> unwindow = {RequiredInt("axis"), RequiredInt("length"),
                                              OptionalInt("stride", 1), OptionalInt("dilation", 1)};
  return {
      Movement("reshape", Op::kReshape, kReshapeShape, {RequiredShape()}, ReshapeGradient,
               EvaluateReshape, "The same elements in row-major order under another shape"),
      Movement("permute", Op::kPermute, kPermuteShape, {RequiredInts("axes")}, PermuteGradient,
               EvaluatePermute, "Result dimension i is x's dimension axes[i]"),
      Movement("expand", Op::kExpand, kExpandShape, {RequiredShape()}, ExpandGradient,
               EvaluateExpand, "x broadcast to shape, as NumPy's broadcast_to"),
      Movement("pad", Op::kPad, kPadShape, {RequiredInts("padding")}, PadGradient, EvaluatePad,
               "Zeros around x: padding is before and after for each dimension"),
      Movement("shrink", Op::kShrink, kShrinkShape, {RequiredInts("bounds")}, ShrinkGradient,
               EvaluateShrink, "A part of x: bounds is begin and end for each dimension"),
      Movement("flip", Op::kFlip, kFlipShape, {OptionalInts("axes", {})}, FlipGradient,
               EvaluateFlip, "x reversed along axes; an empty list means all"),
      Movement("window", Op::kWindow, kWindowShape, window, WindowGradient, EvaluateWindow,
               "Sliding windows: the axis becomes the windows' positions and a last dimension of "
               "size is added; result[…, o, …, k] = x[…, o * stride + k * dilation, …]"),
      Movement("unwindow", Op::kUnwindow, kUnwindowShape, unwindow, UnwindowGradient,
               EvaluateUnwindow,
               "The adjoint of window, before its sum over the last dimension: each window's "
               "elements put back where they came from along an axis of length, zero elsewhere"),
  };
}

}  // namespace kiln::ops
