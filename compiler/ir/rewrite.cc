#include "compiler/ir/rewrite.h"

#include <utility>

#include "proto/check/check.h"

namespace kiln::ir {

Rewriter::Rewriter(Context& context, absl::Span<const Rule> rules) : context_(context) {
  for (const Rule& rule : rules) {
    for (Op op : rule.ops) rules_[static_cast<size_t>(op)].push_back(&rule);
  }
}

const Node* Rewriter::Rewrite(const Node* root) {
  if (root == nullptr) return nullptr;
  auto known = memo_.find(root);
  if (known != memo_.end()) return known->second;
  memo_[root] = nullptr;
  stack_.push_back({root});
  while (!stack_.empty()) Step();
  KILN_VALIDATE(*this, memo_.size());
  return memo_.at(root);
}

void Rewriter::Validate() const {
  KILN_CHECK(stack_.empty());
  for (const auto& [node, result] : memo_) {
    KILN_CHECK(result != nullptr) << "node " << node->id() << " is still in progress";
    KILN_CHECK_EQ(result->dtype(), node->dtype()) << "node " << node->id();
    KILN_CHECK(result->shape() == node->shape()) << "node " << node->id();
  }
}

// Advances the top frame by one step: operands first, then the rules, then the fixed point of a
// rule's result.
void Rewriter::Step() {
  // A copy, since pushing moves the frames.
  const Frame frame = stack_.back();
  if (frame.replacement != nullptr) return Finish(memo_.at(frame.replacement));
  if (PushNextOperand()) return;

  const Node* rebuilt = Rebuild(frame.node);
  if (rebuilt != frame.node) {
    auto [known, inserted] = memo_.try_emplace(rebuilt, nullptr);
    if (!inserted) {
      report_.cyclic |= known->second == nullptr;
      return Finish(known->second == nullptr ? rebuilt : known->second);
    }
  }
  stack_.back().rebuilt = rebuilt;
  const Node* replacement = ApplyFirst(rebuilt);
  if (replacement == nullptr) return Finish(rebuilt);
  auto [known, inserted] = memo_.try_emplace(replacement, nullptr);
  if (!inserted && known->second == nullptr) {
    report_.cyclic = true;
    return Finish(rebuilt);
  }
  stack_.back().replacement = replacement;
  if (inserted) stack_.push_back({replacement});
}

// Returns false once every operand is final, or in progress: wrapped by a rule into its own
// replacement. Pushes one operand at a time, since "in progress" must mean "below on the stack",
// not "queued".
bool Rewriter::PushNextOperand() {
  Frame& frame = stack_.back();
  while (frame.next_operand < frame.node->operands().size()) {
    const Node* operand = frame.node->operand(frame.next_operand++);
    if (!memo_.try_emplace(operand, nullptr).second) continue;
    stack_.push_back({operand});
    return true;
  }
  return false;
}

const Node* Rewriter::Rebuild(const Node* node) {
  bool changed = false;
  std::vector<const Node*> operands;
  operands.reserve(node->operands().size());
  for (const Node* operand : node->operands()) {
    const Node* known = memo_.at(operand);
    report_.cyclic |= known == nullptr;
    operands.push_back(known == nullptr ? operand : known);
    changed |= operands.back() != operand;
  }
  return changed ? context_.WithOperands(node, std::move(operands)) : node;
}

const Node* Rewriter::ApplyFirst(const Node* node) {
  for (const Rule* rule : rules_[static_cast<size_t>(node->op())]) {
    const Node* result = rule->apply(context_, node);
    if (result == nullptr || result == node) continue;
    KILN_CHECK_EQ(result->dtype(), node->dtype()) << "rule " << rule->name;
    KILN_CHECK(result->shape() == node->shape()) << "rule " << rule->name;
    ++report_.applied[rule->name];
    return result;
  }
  return nullptr;
}

void Rewriter::Finish(const Node* result) {
  KILN_CHECK(result != nullptr && !stack_.empty());
  const Frame frame = stack_.back();
  stack_.pop_back();
  memo_[frame.node] = result;
  // Then the rebuilt node is not rewritten again when another user reaches it.
  if (frame.rebuilt != nullptr) memo_[frame.rebuilt] = result;
}

}  // namespace kiln::ir
