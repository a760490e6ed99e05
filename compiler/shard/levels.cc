#include "compiler/shard/levels.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;

// A value with more elementwise ops than that is stored, however large it is.
constexpr int kRecomputedWorkMax = 16;

std::vector<const Node*> RootsOf(const LocalGraph& local) {
  std::vector<const Node*> roots = local.outputs;
  roots.insert(roots.end(), local.updates.begin(), local.updates.end());
  return roots;
}

}  // namespace

Levels::Levels(const LocalGraph& local) : local_(local) {
  const std::vector<bool> used = FindUsed();
  ir::TopologicalWalk walk;
  for (size_t i = 0; i < local.collectives.size(); ++i) {
    if (!used[i]) continue;
    for (const Node* node : walk.Visit(local.collectives[i].operand)) Add(node);
    const int level = Of(local.collectives[i].operand);
    segments_ = std::max(segments_, level + 2);
    if (static_cast<int>(collectives_.size()) <= level) collectives_.resize(level + 1);
    collectives_[level].push_back(static_cast<int>(i));
  }
  for (const Node* root : RootsOf(local)) {
    for (const Node* node : walk.Visit(root)) Add(node);
  }
  collectives_.resize(segments_);
  // As much work as building it.
  KILN_VALIDATE(*this, 1);
}

void Levels::Validate() const {
  KILN_CHECK_GE(segments_, 1);
  KILN_CHECK_EQ(collectives_.size(), segments_);
  for (const auto& [node, facts] : facts_) {
    KILN_CHECK(facts.level >= 0 && facts.level < segments_) << "node " << node->id();
    for (const Node* operand : node->operands()) KILN_CHECK_LE(Of(operand), facts.level);
    const int collective = CollectiveOf(node);
    if (collective >= 0) KILN_CHECK_EQ(facts.level, Of(local_.collectives[collective].operand) + 1);
  }
  for (int level = 0; level < segments_; ++level) {
    for (const int i : collectives_[level])
      KILN_CHECK_EQ(Of(local_.collectives[i].operand), level) << "collective " << i;
  }
}

int Levels::CollectiveOf(const Node* node) const {
  if (node->op() != Op::kInput) return -1;
  const int64_t index = node->attr<ir::InputAttr>().index - local_.first_result();
  return index < 0 ? -1 : static_cast<int>(index);
}

std::vector<bool> Levels::FindUsed() const {
  std::vector<bool> used(local_.collectives.size(), false);
  ir::TopologicalWalk walk;
  const auto visit = [&](const Node* root) {
    for (const Node* node : walk.Visit(root)) {
      if (const int i = CollectiveOf(node); i >= 0) used[i] = true;
    }
  };
  for (const Node* root : RootsOf(local_)) visit(root);
  // A collective's operand needs only results of earlier collectives.
  for (size_t i = used.size(); i-- > 0;) {
    if (used[i]) visit(local_.collectives[i].operand);
  }
  return used;
}

void Levels::Add(const Node* node) {
  Facts facts;
  const int64_t elements = ir::NumElements(node->shape());
  const int collective = CollectiveOf(node);
  facts.is_source = node->op() != Op::kInput;
  facts.is_at_hand = collective < 0;
  for (const Node* operand : node->operands()) {
    const Facts& below = facts_.at(operand);
    facts.level = std::max(facts.level, below.level);
    facts.is_source = facts.is_source && below.is_source;
    facts.is_at_hand = facts.is_at_hand && below.is_at_hand;
    facts.work = std::min(facts.work + below.work, kRecomputedWorkMax + 1);
    facts.leaf_elements = std::max(facts.leaf_elements, below.leaf_elements);
  }
  if (collective >= 0) facts.level = Of(local_.collectives[collective].operand) + 1;
  const RuleKind kind = RuleOf(node->op());
  if (kind == RuleKind::kElementwise) ++facts.work;
  const bool is_view = kind == RuleKind::kMovement;
  const bool is_cheap = kind == RuleKind::kElementwise && node->op() != Op::kContiguous &&
                        facts.work <= kRecomputedWorkMax;
  const bool grows = facts.leaf_elements < elements / 2;
  facts.is_at_hand =
      facts.is_at_hand && (node->op() == Op::kInput || is_view || is_cheap || facts.is_source);
  facts.made_again = facts.is_source || is_view || (is_cheap && (grows || facts.is_at_hand));
  if (!facts.made_again) {
    facts.leaf_elements = elements;
    facts.work = 0;
  }
  facts_[node] = facts;
}

}  // namespace kiln::shard
