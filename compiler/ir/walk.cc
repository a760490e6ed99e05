#include "compiler/ir/walk.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::ir {

std::vector<const Node*> RangesOf(const Node* root) {
  std::vector<const Node*> ranges;
  for (const Node* node : TopologicalOrder({&root, 1})) {
    if (node->op() == Op::kRange) ranges.push_back(node);
  }
  std::sort(ranges.begin(), ranges.end(),
            [](const Node* a, const Node* b) { return a->id() < b->id(); });
  return ranges;
}

std::vector<const Node*> TopologicalWalk::Visit(const Node* root) {
  std::vector<const Node*> order;
  struct Frame {
    const Node* node;
    size_t next_operand;
  };
  std::vector<Frame> stack;
  if (root != nullptr && seen_.insert(root).second) stack.push_back({root, 0});
  while (!stack.empty()) {
    Frame& frame = stack.back();
    if (frame.next_operand == frame.node->operands().size()) {
      order.push_back(frame.node);
      stack.pop_back();
      continue;
    }
    const Node* operand = frame.node->operand(frame.next_operand++);
    if (seen_.insert(operand).second) stack.push_back({operand, 0});
  }
  return order;
}

std::vector<const Node*> TopologicalOrder(absl::Span<const Node* const> roots) {
  TopologicalWalk walk;
  std::vector<const Node*> order;
  for (const Node* root : roots) {
    std::vector<const Node*> more = walk.Visit(root);
    KILN_DCHECK(root == nullptr || more.empty() || more.back() == root);
    if (order.empty()) {
      order = std::move(more);
    } else {
      order.insert(order.end(), more.begin(), more.end());
    }
  }
  return order;
}

}  // namespace kiln::ir
