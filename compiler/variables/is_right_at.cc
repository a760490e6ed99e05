#include "compiler/variables/is_right_at.h"

#include <optional>
#include <utility>
#include <vector>

#include "compiler/graph/simplify/simplify.h"
#include "compiler/graph/verify.h"
#include "compiler/ops/builder.h"
#include "compiler/variables/probes.h"

namespace kiln::variables {
namespace {

using ir::Node;
using ir::Op;

// Returns the sizes at these values; nothing if one is negative, since no graph has that shape.
std::optional<ir::Shape> ShapeAt(absl::Span<const Affine> shape, absl::Span<const int64_t> values) {
  ir::Shape sizes;
  for (const Affine& size : shape) {
    sizes.push_back(At(size, values));
    if (sizes.back() < 0) return std::nullopt;
  }
  return sizes;
}

ir::Attribute AttributeAt(const GeneralNode& node, absl::Span<const int64_t> values) {
  if (const auto* formula = std::get_if<Formula>(&node.varying)) {
    return ConstantAt(*formula, node.dtype, values);
  }
  if (const auto* ints = std::get_if<std::vector<Affine>>(&node.varying)) {
    ir::IntsAttr attribute;
    for (const Affine& number : *ints) attribute.values.push_back(At(number, values));
    return attribute;
  }
  return node.attribute;
}

// Builder omits ops that change nothing, which may depend on the values. So these nodes are made by
// Builder as well.
const Node* MakeAt(ops::Builder& builder, const GeneralNode& node, const ir::Shape& shape,
                   std::vector<const Node*> operands, ir::Attribute attribute) {
  const auto ints = [&]() -> const std::vector<int64_t>& {
    return std::get<ir::IntsAttr>(attribute).values;
  };
  switch (node.op) {
    case Op::kReduceSum:
    case Op::kReduceProd:
    case Op::kReduceMax:
      return builder.Reduce(node.op, operands[0], ints(), /*keepdims=*/true);
    case Op::kReshape:
      return builder.Reshape(operands[0], shape);
    case Op::kExpand:
      return builder.Expand(operands[0], shape);
    case Op::kPad:
      return builder.Pad(operands[0], ints());
    case Op::kShrink:
      return builder.Shrink(operands[0], ints());
    case Op::kFlip:
      return builder.Flip(operands[0], ints());
    default:
      return builder.context().Get(node.op, node.dtype, shape, std::move(operands),
                                   std::move(attribute));
  }
}

std::optional<std::vector<const Node*>> NodesAt(const GeneralGraph& general, ir::Context& context,
                                                absl::Span<const int64_t> values) {
  ops::Builder builder(context);
  std::vector<const Node*> nodes;
  nodes.reserve(general.nodes.size());
  for (const GeneralNode& node : general.nodes) {
    std::vector<const Node*> operands;
    for (const int operand : node.operands) operands.push_back(nodes[operand]);
    const std::optional<ir::Shape> shape = ShapeAt(node.shape, values);
    if (!shape.has_value()) return std::nullopt;
    nodes.push_back(MakeAt(builder, node, *shape, std::move(operands), AttributeAt(node, values)));
    // The formulas of the shape and of the attribute disagree at these values.
    if (nodes.back()->shape() != *shape) return std::nullopt;
  }
  return nodes;
}

bool SameInputs(const GeneralGraph& general, const graph::Graph& special,
                absl::Span<const int64_t> values) {
  if (general.inputs.size() != special.inputs.size()) return false;
  for (size_t i = 0; i < general.inputs.size(); ++i) {
    const bool same = general.inputs[i].dtype == special.inputs[i].dtype &&
                      ShapeAt(general.inputs[i].shape, values) == special.inputs[i].shape;
    if (!same) return false;
  }
  return true;
}

}  // namespace

bool IsRightAt(const GeneralGraph& general, const graph::Graph& special,
               absl::Span<const int64_t> variables) {
  const std::vector<int64_t> values = WithDerived(variables, general.derived);
  const bool same_results = general.outputs.size() == special.outputs.size() &&
                            general.updates.size() == special.updates.size();
  if (!same_results || !SameInputs(general, special, values)) return false;
  const std::optional<std::vector<const Node*>> nodes = NodesAt(general, *special.context, values);
  if (!nodes.has_value()) return false;
  std::vector<const Node*> roots;
  for (const int output : general.outputs) roots.push_back((*nodes)[output]);
  for (size_t i = 0; i < general.updates.size(); ++i) {
    if (general.updates[i].input != special.updates[i].input) return false;
    roots.push_back((*nodes)[general.updates[i].value]);
  }
  // Nodes are interned in one context, so equal expressions are equal pointers.
  if (roots == graph::Roots(special)) return true;
  // The graphs may still differ in form, for example at a size of 1. If simplification makes them
  // the same nodes, they compute the same.
  const graph::Graph both = graph::WithRoots(special, roots);
  return graph::Roots(graph::Simplify(both)) == graph::Roots(graph::Simplify(special));
}

}  // namespace kiln::variables
