#include "compiler/graph/varying_axes.h"

#include <utility>

#include "compiler/ir/reshape_groups.h"

namespace kiln::graph {
namespace {

using ir::Node;
using ir::Op;
using AxisFlags = std::vector<bool>;

AxisFlags Reshaped(const Node* node, const AxisFlags& from) {
  AxisFlags result(node->shape().size(), true);
  if (ir::NumElements(node->shape()) == 0) return result;
  for (const ir::ReshapeGroup& group :
       ir::ReshapeGroups(node->operand(0)->shape(), node->shape())) {
    bool varies = false;
    for (size_t i = group.from; i < group.from_end; ++i) varies = varies || from[i];
    for (size_t i = group.to; i < group.to_end; ++i) result[i] = varies;
  }
  return result;
}

AxisFlags Permuted(const Node* node, const AxisFlags& from) {
  AxisFlags result;
  for (const int64_t axis : ir::IntsOf(node)) result.push_back(from[axis]);
  return result;
}

AxisFlags Padded(const Node* node, AxisFlags axes) {
  const std::vector<int64_t>& padding = ir::IntsOf(node);
  for (size_t i = 0; i < axes.size(); ++i) {
    axes[i] = axes[i] || padding[2 * i] > 0 || padding[2 * i + 1] > 0;
  }
  return axes;
}

AxisFlags Gathered(const Node* node, AxisFlags x, const AxisFlags& index) {
  const auto axis = static_cast<size_t>(node->attr<ir::IntAttr>().value);
  for (size_t i = 0; i < x.size(); ++i) x[i] = index[i] || (x[i] && i != axis);
  return x;
}

AxisFlags United(const Node* node, const absl::flat_hash_map<const Node*, AxisFlags>& known) {
  AxisFlags result(node->shape().size(), false);
  for (const Node* operand : node->operands()) {
    const AxisFlags& axes = known.at(operand);
    for (size_t i = 0; i < result.size(); ++i) result[i] = result[i] || axes[i];
  }
  return result;
}

}  // namespace

AxisFlags VaryingAxes::Of(const Node* node) {
  for (const Node* below : walk_.Visit(node)) {
    AxisFlags axes = Compute(below);
    for (size_t i = 0; i < axes.size(); ++i) axes[i] = axes[i] && below->shape()[i] != 1;
    axes_[below] = std::move(axes);
  }
  return axes_.at(node);
}

AxisFlags VaryingAxes::Compute(const Node* node) const {
  AxisFlags all(node->shape().size(), true);
  if (node->operands().empty()) {
    if (node->op() != Op::kIota) return all;
    AxisFlags one(node->shape().size(), false);
    one[node->attr<ir::IntAttr>().value] = true;
    return one;
  }
  const AxisFlags& x = axes_.at(node->operand(0));
  switch (node->op()) {
    case Op::kReshape:
      return Reshaped(node, x);
    case Op::kPermute:
      return Permuted(node, x);
    case Op::kPad:
      return Padded(node, x);
    case Op::kWindow: {
      AxisFlags windows = x;
      windows.push_back(x[ir::IntsOf(node)[0]]);
      return windows;
    }
    case Op::kUnwindow: {
      // Zeros are inserted between the elements, at different positions for each index of the last
      // axis.
      AxisFlags apart = x;
      apart[ir::IntsOf(node)[0]] = true;
      apart.back() = true;
      return apart;
    }
    case Op::kGatherElements:
      return Gathered(node, x, axes_.at(node->operand(1)));
    case Op::kScatterElements:
    case Op::kGradient:
      return all;
    default:
      // Elementwise ops, reductions and expansions: the value does not vary along axes of size 1.
      return United(node, axes_);
  }
}

}  // namespace kiln::graph
