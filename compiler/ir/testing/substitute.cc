#include "compiler/ir/testing/substitute.h"

#include <utility>

#include "compiler/ir/walk.h"

namespace kiln::ir {

std::vector<const Node*> Substitute(Context& context, absl::Span<const Node* const> roots,
                                    const Substitution& substitution) {
  absl::flat_hash_map<const Node*, const Node*> result;
  for (const Node* node : TopologicalOrder(roots)) {
    auto replaced = substitution.find(node);
    if (replaced != substitution.end()) {
      result[node] = replaced->second;
      continue;
    }
    bool changed = false;
    std::vector<const Node*> operands;
    operands.reserve(node->operands().size());
    for (const Node* operand : node->operands()) {
      operands.push_back(result.at(operand));
      changed |= operands.back() != operand;
    }
    result[node] = changed ? context.WithOperands(node, std::move(operands)) : node;
  }
  std::vector<const Node*> substituted;
  substituted.reserve(roots.size());
  for (const Node* root : roots) {
    substituted.push_back(root == nullptr ? nullptr : result.at(root));
  }
  return substituted;
}

const Node* Substitute(Context& context, const Node* root, const Substitution& substitution) {
  return Substitute(context, absl::MakeConstSpan(&root, 1), substitution)[0];
}

}  // namespace kiln::ir
