#include "compiler/autodiff/reverse.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/op_def.h"

namespace kiln::autodiff {
namespace {

using ir::Node;
using NodeSet = absl::flat_hash_set<const Node*>;

// Returns the nodes through which a gradient must flow to reach `wanted`. `order` has operands
// before users.
NodeSet FindPaths(absl::Span<const Node* const> order, absl::Span<const Node* const> wanted) {
  const NodeSet ends(wanted.begin(), wanted.end());
  NodeSet paths;
  for (const Node* node : order) {
    // Integers and bools have no derivative; a path through one ends there.
    if (!ir::IsFloat(node->dtype())) continue;
    const auto& operands = node->operands();
    const bool leads_on = ops::DefOf(node->op()).gradient != nullptr &&
                          std::any_of(operands.begin(), operands.end(),
                                      [&](const Node* operand) { return paths.contains(operand); });
    if (leads_on || ends.contains(node)) paths.insert(node);
  }
  return paths;
}

}  // namespace

absl::flat_hash_map<const Node*, const Node*> Adjoints(ops::Builder& builder, const Node* y,
                                                       const Node* seed,
                                                       absl::Span<const Node* const> wanted) {
  const std::vector<const Node*> order = ir::TopologicalOrder({y});
  const NodeSet paths = FindPaths(order, wanted);
  absl::flat_hash_map<const Node*, const Node*> adjoints;
  if (paths.contains(y)) adjoints[y] = seed;
  // Users come before operands, so an adjoint is complete when its node is reached.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    const Node* node = *it;
    const auto known = adjoints.find(node);
    const ops::GradientFn gradient = ops::DefOf(node->op()).gradient;
    if (known == adjoints.end() || gradient == nullptr) continue;
    const std::vector<const Node*> parts = gradient(builder, node, known->second);
    for (size_t i = 0; i < parts.size(); ++i) {
      const Node* operand = node->operand(static_cast<int>(i));
      // Drops a part that leads to no wanted node: nothing reads it.
      if (parts[i] == nullptr || !paths.contains(operand)) continue;
      const auto [sum, is_first] = adjoints.try_emplace(operand, parts[i]);
      if (!is_first) sum->second = builder.Add(sum->second, parts[i]);
    }
  }
  absl::flat_hash_map<const Node*, const Node*> result;
  for (const Node* node : wanted) {
    const auto found = adjoints.find(node);
    if (found != adjoints.end()) result.insert(*found);
  }
  return result;
}

}  // namespace kiln::autodiff
