// Movement ops: removed if nothing moves, merged if two of a kind follow each other, expands moved
// last.
#include <algorithm>

#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/splat.h"

namespace kiln::graph {
namespace {

using ir::Context;
using ir::IntsAttr;
using ir::Node;
using ir::Op;
using ir::Shape;

const Node* SameShape(Context&, const Node* node) {
  return node->shape() == node->operand(0)->shape() ? node->operand(0) : nullptr;
}

// Reshape of reshape and expand of expand: only the last shape matters.
const Node* LastShapeCounts(Context& context, const Node* node) {
  if (node->operand(0)->op() != node->op()) return nullptr;
  return context.WithOperands(node, {node->operand(0)->operand(0)});
}

const Node* PermuteNothing(Context&, const Node* node) {
  return std::is_sorted(ir::IntsOf(node).begin(), ir::IntsOf(node).end()) ? node->operand(0)
                                                                          : nullptr;
}

const Node* PermuteOfPermute(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kPermute) return nullptr;
  std::vector<int64_t> order;
  for (int64_t axis : ir::IntsOf(node)) order.push_back(ir::IntsOf(inner)[axis]);
  return context.Get(Op::kPermute, node->dtype(), node->shape(), {inner->operand(0)},
                     IntsAttr{std::move(order)});
}

// If the axes longer than 1 keep their order, the permutation is a reshape.
const Node* PermuteOfOnes(Context& context, const Node* node) {
  std::vector<int64_t> order;
  for (int64_t axis : ir::IntsOf(node)) {
    if (node->operand(0)->shape()[axis] != 1) order.push_back(axis);
  }
  if (!std::is_sorted(order.begin(), order.end())) return nullptr;
  return ReshapeTo(context, node->operand(0), node->shape());
}

// Expands go last, so that the ops before them work on the smaller tensor.
const Node* PermuteOfExpand(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kExpand) return nullptr;
  Shape shape;
  for (int64_t axis : ir::IntsOf(node)) shape.push_back(inner->operand(0)->shape()[axis]);
  const Node* moved = context.Get(Op::kPermute, node->dtype(), std::move(shape),
                                  {inner->operand(0)}, node->attribute());
  return ExpandTo(context, moved, node->shape());
}

// A reshape that only adds or removes axes of size 1 commutes with an expand: the other axes keep
// their order.
const Node* ReshapeOfExpand(Context& context, const Node* node) {
  const Node* expand = node->operand(0);
  if (expand->op() != Op::kExpand) return nullptr;
  const Shape& from = expand->shape();
  Shape shape(node->shape().size(), 1);
  size_t next = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (node->shape()[axis] == 1) continue;
    while (next < from.size() && from[next] == 1) ++next;
    if (next == from.size() || from[next] != node->shape()[axis]) return nullptr;
    shape[axis] = expand->operand(0)->shape()[next++];
  }
  if (std::any_of(from.begin() + next, from.end(), [](int64_t size) { return size != 1; })) {
    return nullptr;
  }
  return ExpandTo(context, ReshapeTo(context, expand->operand(0), shape), node->shape());
}

const Node* PadOfPad(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kPad) return nullptr;
  std::vector<int64_t> padding = ir::IntsOf(node);
  for (size_t i = 0; i < padding.size(); ++i) padding[i] += ir::IntsOf(inner)[i];
  return context.Get(Op::kPad, node->dtype(), node->shape(), {inner->operand(0)},
                     IntsAttr{std::move(padding)});
}

const Node* ShrinkOfShrink(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kShrink) return nullptr;
  std::vector<int64_t> bounds = ir::IntsOf(node);
  // Both ends are relative to the begin of the inner part.
  for (size_t i = 0; i < bounds.size(); ++i) bounds[i] += ir::IntsOf(inner)[i / 2 * 2];
  return context.Get(Op::kShrink, node->dtype(), node->shape(), {inner->operand(0)},
                     IntsAttr{std::move(bounds)});
}

// A part of a padded tensor is a part of the tensor with less padding; zero if the part contains
// none of the tensor.
const Node* ShrinkOfPad(Context& context, const Node* node) {
  const Node* pad = node->operand(0);
  if (pad->op() != Op::kPad) return nullptr;
  const Node* x = pad->operand(0);
  std::vector<int64_t> bounds, padding;
  Shape shape;
  for (size_t axis = 0; axis < node->shape().size(); ++axis) {
    int64_t before = ir::IntsOf(pad)[2 * axis];
    // The part's ends as positions in x, clamped to x.
    int64_t begin = std::max<int64_t>(ir::IntsOf(node)[2 * axis] - before, 0);
    int64_t end = std::min(ir::IntsOf(node)[2 * axis + 1] - before, x->shape()[axis]);
    if (begin >= end) return MakeSplat(context, node->dtype(), node->shape(), 0);
    bounds.insert(bounds.end(), {begin, end});
    padding.push_back(std::max<int64_t>(before - ir::IntsOf(node)[2 * axis], 0));
    padding.push_back(node->shape()[axis] - padding.back() - (end - begin));
    shape.push_back(end - begin);
  }
  const Node* part =
      context.Get(Op::kShrink, node->dtype(), shape, {x}, IntsAttr{std::move(bounds)});
  return context.Get(Op::kPad, node->dtype(), node->shape(), {part}, IntsAttr{std::move(padding)});
}

// All parts of an expanded axis are equal: only the other axes need the shrink.
const Node* ShrinkOfExpand(Context& context, const Node* node) {
  const Node* expand = node->operand(0);
  if (expand->op() != Op::kExpand) return nullptr;
  const Shape& from = expand->operand(0)->shape();
  std::vector<int64_t> bounds = ir::IntsOf(node);
  Shape shape = node->shape();
  for (size_t axis = 0; axis < from.size(); ++axis) {
    if (from[axis] == expand->shape()[axis]) continue;
    bounds[2 * axis] = 0;
    bounds[2 * axis + 1] = 1;
    shape[axis] = 1;
  }
  const Node* part = context.Get(Op::kShrink, node->dtype(), std::move(shape), {expand->operand(0)},
                                 IntsAttr{std::move(bounds)});
  return ExpandTo(context, part, node->shape());
}

// Axes of size 1 need no flip; without other axes the flip is removed.
const Node* FlipOfOnes(Context& context, const Node* node) {
  std::vector<int64_t> axes;
  for (int64_t axis : ir::IntsOf(node)) {
    if (node->shape()[axis] != 1) axes.push_back(axis);
  }
  if (axes.empty()) return node->operand(0);
  if (axes.size() == ir::IntsOf(node).size()) return nullptr;
  return context.Get(Op::kFlip, node->dtype(), node->shape(), {node->operand(0)},
                     IntsAttr{std::move(axes)});
}

// Two flips of an axis cancel.
const Node* FlipOfFlip(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kFlip) return nullptr;
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < static_cast<int64_t>(node->shape().size()); ++axis) {
    auto has = [&](const Node* flip) {
      return std::find(ir::IntsOf(flip).begin(), ir::IntsOf(flip).end(), axis) !=
             ir::IntsOf(flip).end();
    };
    if (has(node) != has(inner)) axes.push_back(axis);
  }
  if (axes.empty()) return inner->operand(0);
  return context.Get(Op::kFlip, node->dtype(), node->shape(), {inner->operand(0)},
                     IntsAttr{std::move(axes)});
}

// Windows of one element with stride 1 only append an axis of size 1.
const Node* WindowOfOne(Context& context, const Node* node) {
  if (ir::IntsOf(node)[1] != 1 || ir::IntsOf(node)[2] != 1) return nullptr;
  return ReshapeTo(context, node->operand(0), node->shape());
}

// The adjoint: every element is its own window and keeps its position.
const Node* UnwindowOfOne(Context&, const Node* node) {
  bool one = node->shape().back() == 1 && ir::IntsOf(node)[2] == 1;
  return one && node->shape() == node->operand(0)->shape() ? node->operand(0) : nullptr;
}

// Returns the tensor before it was expanded, or `node` if it was not.
const Node* BeforeExpand(const Node* node) {
  return node->op() == Op::kExpand ? node->operand(0) : node;
}

// If all operands of an elementwise op repeat along an axis, the result does too: compute it once,
// then expand.
const Node* ElementwiseOfExpand(Context& context, const Node* node) {
  Shape shape(node->shape().size(), 1);
  for (const Node* operand : node->operands()) {
    const Shape& before = BeforeExpand(operand)->shape();
    for (size_t i = 0; i < shape.size(); ++i) shape[i] = std::max(shape[i], before[i]);
    // With a size of zero nothing is saved, and the maximum above would be wrong.
    if (std::find(before.begin(), before.end(), 0) != before.end()) return nullptr;
  }
  bool empty = std::find(node->shape().begin(), node->shape().end(), 0) != node->shape().end();
  if (empty || shape == node->shape()) return nullptr;
  std::vector<const Node*> operands;
  for (const Node* operand : node->operands()) {
    operands.push_back(ExpandTo(context, BeforeExpand(operand), shape));
  }
  const Node* small =
      context.Get(node->op(), node->dtype(), shape, std::move(operands), node->attribute());
  return ExpandTo(context, small, node->shape());
}

}  // namespace

std::vector<ir::Rule> MovementRules() {
  return {
      {"same_shape", {Op::kReshape, Op::kExpand, Op::kPad, Op::kShrink}, SameShape},
      {"last_shape_counts", {Op::kReshape, Op::kExpand}, LastShapeCounts},
      {"permute_nothing", {Op::kPermute}, PermuteNothing},
      {"permute_of_permute", {Op::kPermute}, PermuteOfPermute},
      {"permute_of_ones", {Op::kPermute}, PermuteOfOnes},
      {"permute_of_expand", {Op::kPermute}, PermuteOfExpand},
      {"reshape_of_expand", {Op::kReshape}, ReshapeOfExpand},
      {"pad_of_pad", {Op::kPad}, PadOfPad},
      {"shrink_of_shrink", {Op::kShrink}, ShrinkOfShrink},
      {"shrink_of_pad", {Op::kShrink}, ShrinkOfPad},
      {"shrink_of_expand", {Op::kShrink}, ShrinkOfExpand},
      {"flip_of_ones", {Op::kFlip}, FlipOfOnes},
      {"flip_of_flip", {Op::kFlip}, FlipOfFlip},
      {"window_of_one", {Op::kWindow}, WindowOfOne},
      {"unwindow_of_one", {Op::kUnwindow}, UnwindowOfOne},
      {"elementwise_of_expand",
       {Op::kNeg,   Op::kReciprocal, Op::kSqrt,    Op::kExp2, Op::kLog2, Op::kSin,   Op::kTrunc,
        Op::kNot,   Op::kCast,       Op::kBitcast, Op::kAdd,  Op::kSub,  Op::kMul,   Op::kDiv,
        Op::kIDiv,  Op::kMod,        Op::kMax,     Op::kMin,  Op::kPow,  Op::kCmpLt, Op::kCmpEq,
        Op::kCmpNe, Op::kAnd,        Op::kOr,      Op::kXor,  Op::kShl,  Op::kShr,   Op::kWhere},
       ElementwiseOfExpand},
  };
}

}  // namespace kiln::graph
