// Reductions: merged, and freed of axes of size 1 and of axes along which the value is constant.
#include <algorithm>

#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/splat.h"

namespace kiln::graph {
namespace {

using ir::Context;
using ir::DType;
using ir::IntsAttr;
using ir::Node;
using ir::Op;
using ir::Shape;

const std::vector<int64_t>& Axes(const Node* node) { return node->attr<IntsAttr>().values; }

// Returns `like`'s reduction of `x` over `axes`, which may be empty.
const Node* ReduceLike(Context& context, const Node* like, const Node* x,
                       std::vector<int64_t> axes) {
  if (axes.empty()) return x;
  Shape shape = x->shape();
  for (int64_t axis : axes) shape[axis] = 1;
  return context.Get(like->op(), like->dtype(), std::move(shape), {x}, IntsAttr{std::move(axes)});
}

const Node* DropAxesOfOne(Context& context, const Node* node) {
  const Node* x = node->operand(0);
  std::vector<int64_t> axes;
  for (int64_t axis : Axes(node)) {
    if (x->shape()[axis] != 1) axes.push_back(axis);
  }
  if (axes.size() == Axes(node).size() && !axes.empty()) return nullptr;
  return ReduceLike(context, node, x, std::move(axes));
}

// Sorts the axes, so that equal reductions are one node.
const Node* SortAxes(Context& context, const Node* node) {
  std::vector<int64_t> axes = Axes(node);
  if (std::is_sorted(axes.begin(), axes.end())) return nullptr;
  std::sort(axes.begin(), axes.end());
  return ReduceLike(context, node, node->operand(0), std::move(axes));
}

const Node* ReduceOfReduce(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != node->op()) return nullptr;
  std::vector<int64_t> axes = Axes(node);
  for (int64_t axis : Axes(inner)) {
    if (std::find(axes.begin(), axes.end(), axis) == axes.end()) axes.push_back(axis);
  }
  std::sort(axes.begin(), axes.end());
  return ReduceLike(context, node, inner->operand(0), std::move(axes));
}

// The axes of a reduction of an expanded tensor: the axes along which it repeats, and the rest.
struct ExpandedAxes {
  int64_t repeats = 1;
  std::vector<int64_t> rest;
  bool any = false;
};

ExpandedAxes SplitAxes(const Node* node) {
  const Node* expand = node->operand(0);
  ExpandedAxes split;
  for (int64_t axis : Axes(node)) {
    if (expand->operand(0)->shape()[axis] == 1 && expand->shape()[axis] != 1) {
      split.repeats *= expand->shape()[axis];
      split.any = true;
    } else {
      split.rest.push_back(axis);
    }
  }
  return split;
}

// The maximum of repeated values is the value.
const Node* MaxOfExpand(Context& context, const Node* node) {
  const Node* expand = node->operand(0);
  if (expand->op() != Op::kExpand) return nullptr;
  ExpandedAxes split = SplitAxes(node);
  // The maximum over no elements is the lowest number, not the value.
  if (!split.any || split.repeats == 0) return nullptr;
  const Node* reduced = ReduceLike(context, node, expand->operand(0), std::move(split.rest));
  return ExpandTo(context, reduced, node->shape());
}

// The sum of a value repeated n times is n times the value.
const Node* SumOfExpand(Context& context, const Node* node) {
  const Node* expand = node->operand(0);
  if (expand->op() != Op::kExpand) return nullptr;
  DType dtype = node->dtype();
  bool holds_count = !ir::IsFloat(dtype) || dtype == DType::kFloat32 || dtype == DType::kFloat64;
  ExpandedAxes split = SplitAxes(node);
  // The count must be a number that the dtype holds exactly; float32 has 24 bits for it.
  int bits = ir::IsFloat(dtype) ? 24 : 8 * ir::SizeOf(dtype) - 1;
  if (!split.any || split.repeats == 0 || !holds_count || split.repeats >> std::min(bits, 62)) {
    return nullptr;
  }
  const Node* reduced = ReduceLike(context, node, expand->operand(0), std::move(split.rest));
  const Node* count =
      MakeSplat(context, dtype, reduced->shape(), static_cast<double>(split.repeats));
  const Node* product = context.Get(Op::kMul, dtype, reduced->shape(), {reduced, count});
  return ExpandTo(context, product, node->shape());
}

}  // namespace

std::vector<ir::Rule> ReduceRules() {
  const std::vector<Op> all = {Op::kReduceSum, Op::kReduceProd, Op::kReduceMax};
  return {
      {"drop_axes_of_one", all, DropAxesOfOne},
      {"sort_axes", all, SortAxes},
      {"reduce_of_reduce", all, ReduceOfReduce},
      {"max_of_expand", {Op::kReduceMax}, MaxOfExpand},
      {"sum_of_expand", {Op::kReduceSum}, SumOfExpand},
  };
}

}  // namespace kiln::graph
