#include "compiler/ir/spec_shapes.h"

#include <algorithm>

#include "compiler/ir/spec.h"

namespace kiln::ir {
namespace {

const std::vector<int64_t>& Ints(const Node& node) { return node.attr<IntsAttr>().values; }
const Shape& OperandShape(const Node& node) { return node.operand(0)->shape(); }
int64_t Rank(const Shape& shape) { return static_cast<int64_t>(shape.size()); }

bool DistinctAxes(const std::vector<int64_t>& axes, int64_t rank) {
  std::vector<bool> seen(rank, false);
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= rank || seen[axis]) return false;
    seen[axis] = true;
  }
  return true;
}

bool IotaLaw(const Node& node) {
  int64_t axis = node.attr<IntAttr>().value;
  return axis >= 0 && axis < Rank(node.shape());
}

bool SameLaw(const Node& node) {
  return std::all_of(node.operands().begin(), node.operands().end(),
                     [&](const Node* operand) { return operand->shape() == node.shape(); });
}

bool ReduceLaw(const Node& node) {
  if (!DistinctAxes(Ints(node), Rank(OperandShape(node)))) return false;
  Shape expected = OperandShape(node);
  for (int64_t axis : Ints(node)) expected[axis] = 1;
  return node.shape() == expected;
}

bool ReshapeLaw(const Node& node) {
  std::optional<int64_t> before = CheckedNumElements(OperandShape(node));
  return before.has_value() && before == CheckedNumElements(node.shape());
}

bool PermuteLaw(const Node& node) {
  const std::vector<int64_t>& order = Ints(node);
  if (Rank(order) != Rank(OperandShape(node)) || Rank(node.shape()) != Rank(OperandShape(node)))
    return false;
  if (!DistinctAxes(order, Rank(OperandShape(node)))) return false;
  for (size_t i = 0; i < order.size(); ++i) {
    if (node.shape()[i] != OperandShape(node)[order[i]]) return false;
  }
  return true;
}

bool ExpandLaw(const Node& node) {
  if (Rank(node.shape()) != Rank(OperandShape(node))) return false;
  for (size_t i = 0; i < OperandShape(node).size(); ++i) {
    if (OperandShape(node)[i] != 1 && OperandShape(node)[i] != node.shape()[i]) return false;
  }
  return true;
}

bool PadLaw(const Node& node) {
  const std::vector<int64_t>& padding = Ints(node);
  if (Rank(node.shape()) != Rank(OperandShape(node)) ||
      Rank(padding) != 2 * Rank(OperandShape(node)))
    return false;
  for (size_t i = 0; i < OperandShape(node).size(); ++i) {
    // Clients may write any number, so even sums can overflow.
    int64_t size;
    if (padding[2 * i] < 0 || padding[2 * i + 1] < 0) return false;
    if (__builtin_add_overflow(padding[2 * i], OperandShape(node)[i], &size)) return false;
    if (__builtin_add_overflow(size, padding[2 * i + 1], &size)) return false;
    if (size != node.shape()[i]) return false;
  }
  return true;
}

bool ShrinkLaw(const Node& node) {
  const std::vector<int64_t>& bounds = Ints(node);
  if (Rank(node.shape()) != Rank(OperandShape(node)) ||
      Rank(bounds) != 2 * Rank(OperandShape(node)))
    return false;
  for (size_t i = 0; i < OperandShape(node).size(); ++i) {
    int64_t begin = bounds[2 * i], end = bounds[2 * i + 1];
    if (begin < 0 || begin > end || end > OperandShape(node)[i] || node.shape()[i] != end - begin) {
      return false;
    }
  }
  return true;
}

bool FlipLaw(const Node& node) {
  return node.shape() == OperandShape(node) && DistinctAxes(Ints(node), Rank(OperandShape(node)));
}

// Returns the number of sliding windows over an axis of `size`; nothing for illegal numbers.
std::optional<int64_t> WindowCount(int64_t size, int64_t window, int64_t stride, int64_t dilation) {
  int64_t span;
  if (window < 1 || stride < 1 || dilation < 1) return std::nullopt;
  // The window must fit at least once.
  if (__builtin_mul_overflow(dilation, window - 1, &span) || span >= size) return std::nullopt;
  return (size - span - 1) / stride + 1;
}

bool WindowLaw(const Node& node) {
  const std::vector<int64_t>& attr = Ints(node);
  if (attr.size() != 4 || attr[0] < 0 || attr[0] >= Rank(OperandShape(node))) return false;
  std::optional<int64_t> count =
      WindowCount(OperandShape(node)[attr[0]], attr[1], attr[2], attr[3]);
  if (!count.has_value()) return false;
  Shape expected = OperandShape(node);
  expected[attr[0]] = *count;
  expected.push_back(attr[1]);
  return node.shape() == expected;
}

bool UnwindowLaw(const Node& node) {
  const std::vector<int64_t>& attr = Ints(node);
  // The last dimension is the position within the window, so the axis is before it.
  if (attr.size() != 4 || attr[0] < 0 || attr[0] + 1 >= Rank(OperandShape(node))) return false;
  std::optional<int64_t> count = WindowCount(attr[1], OperandShape(node).back(), attr[2], attr[3]);
  if (count != OperandShape(node)[attr[0]]) return false;
  Shape expected = OperandShape(node);
  expected[attr[0]] = attr[1];
  return node.shape() == expected;
}

// Returns x's shape with index's size at the axis; nothing if the two do not match.
std::optional<Shape> GatheredShape(const Node& node, int64_t axis) {
  const Shape& index = node.operand(1)->shape();
  if (axis < 0 || axis >= Rank(OperandShape(node)) || Rank(index) != Rank(OperandShape(node)))
    return std::nullopt;
  Shape shape = OperandShape(node);
  shape[axis] = index[axis];
  for (size_t i = 0; i < shape.size(); ++i) {
    if (index[i] != shape[i] && index[i] != 1) return std::nullopt;
  }
  return shape;
}

bool GatherElementsLaw(const Node& node) {
  return GatheredShape(node, node.attr<IntAttr>().value) == node.shape();
}

bool ScatterElementsLaw(const Node& node) {
  return node.shape() == OperandShape(node) &&
         GatheredShape(node, node.attr<ScatterAttr>().axis) == node.operand(2)->shape();
}

bool ShardLaw(const Node& node) { return SameLaw(node) && IsSpec(Ints(node), node.shape().size()); }

bool SendLaw(const Node& node) {
  return SameLaw(node) && Ints(node).size() == 2 && Ints(node)[0] >= 0 && Ints(node)[1] >= 0;
}

bool GradientLaw(const Node& node) {
  bool scalar = node.operand(0)->shape().empty();
  bool seeded = node.operands().size() == 3;
  if (seeded && node.operand(2)->shape() != node.operand(0)->shape()) return false;
  return (seeded || scalar) && node.shape() == node.operand(1)->shape();
}

}  // namespace

const ShapeLaw kAnyShapeLaw = {"any shape", [](const Node&) { return true; }};
const ShapeLaw kScalarShapeLaw = {"a scalar",
                                  [](const Node& node) { return node.shape().empty(); }};
const ShapeLaw kIotaShapeLaw = {"the axis is one of the shape's", IotaLaw};
const ShapeLaw kSameShapeLaw = {"operands and result have one shape", SameLaw};
const ShapeLaw kReduceShapeLaw = {"the operand's shape with size 1 at distinct axes", ReduceLaw};
const ShapeLaw kReshapeShapeLaw = {"as many elements as the operand has", ReshapeLaw};
const ShapeLaw kPermuteShapeLaw = {"the operand's sizes in the order given, each axis once",
                                   PermuteLaw};
const ShapeLaw kExpandShapeLaw = {"the operand's rank; only sizes of 1 change", ExpandLaw};
const ShapeLaw kPadShapeLaw = {"before + size + after for each axis, padding not negative", PadLaw};
const ShapeLaw kShrinkShapeLaw = {"end - begin for each axis, 0 <= begin <= end <= size",
                                  ShrinkLaw};
const ShapeLaw kFlipShapeLaw = {"the operand's shape, distinct axes", FlipLaw};
const ShapeLaw kWindowShapeLaw = {
    "(size - dilation*(window-1) - 1)/stride + 1 at the axis, the window appended", WindowLaw};
const ShapeLaw kUnwindowShapeLaw = {
    "the size given at the axis, of which the operand's last dimension makes that many windows",
    UnwindowLaw};
const ShapeLaw kGatherElementsShapeLaw = {
    "the first operand's with the index's size at the axis; the index has those sizes or 1",
    GatherElementsLaw};
const ShapeLaw kScatterElementsShapeLaw = {
    "the first operand's; the values have the shape of a gather at the index", ScatterElementsLaw};
const ShapeLaw kShardShapeLaw = {
    "the operand's; a count for each dimension and as many axes of a mesh, each once", ShardLaw};
const ShapeLaw kSendShapeLaw = {"the operand's; the numbers of two devices", SendLaw};
const ShapeLaw kGradientShapeLaw = {
    "that of x; y is a scalar unless an upstream gradient of its shape is given", GradientLaw};

}  // namespace kiln::ir
