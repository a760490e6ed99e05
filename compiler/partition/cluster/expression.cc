#include "compiler/partition/cluster/expression.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "compiler/partition/reads.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

// Number of leaves that an estimate keeps.
constexpr size_t kLeavesMax = 8;

// The cost of computing one vector of elements, relative to reading as many elements from memory.
double WeightOf(const Node* node, const drivers::StorageCosts& costs) {
  // Movement becomes index arithmetic, and a bitcast keeps the register.
  if (!IsElementwise(node) || node->op() == Op::kBitcast) return 0;
  if (node->op() == Op::kPow) return costs.power;
  if (IsTranscendental(node)) return costs.transcendental;
  const bool slow = node->op() == Op::kDiv || node->op() == Op::kSqrt ||
                    node->op() == Op::kReciprocal || node->op() == Op::kIDiv ||
                    node->op() == Op::kMod;
  return slow ? costs.division : costs.operation;
}

}  // namespace

Expression StoredExpression(const Node* node) {
  Expression result;
  result.reads_reduction = IsReduction(node);
  result.leaves = {node};
  result.num_leaves = 1;
  return result;
}

Expression EstimateExpression(const Node* node,
                              const absl::flat_hash_map<const Node*, Expression>& operands,
                              const drivers::StorageCosts& costs) {
  Expression result;
  result.nodes = 1;
  result.arithmetic = WeightOf(node, costs);
  if (node->op() == Op::kInput) {
    result.leaves.insert(node);
    result.num_leaves = 1;
    return result;
  }
  for (const Node* operand : node->operands()) {
    const Expression& inner = operands.at(operand);
    // Shared operands count once per use: a chain of x + x doubles the number at every step.
    result.nodes = std::min(result.nodes + inner.nodes, 1 << 20);
    result.num_leaves = std::min(result.num_leaves + inner.num_leaves, 1 << 20);
    result.arithmetic += inner.arithmetic;
    result.reads_reduction = result.reads_reduction || inner.reads_reduction;
    for (const Node* leaf : inner.leaves) {
      if (result.leaves.size() < kLeavesMax) result.leaves.insert(leaf);
    }
  }
  return result;
}

Expression WalkExpression(const Node* node, const absl::flat_hash_set<const Node*>& stored,
                          const drivers::StorageCosts& costs) {
  Expression result;
  absl::flat_hash_set<const Node*> seen = {node};
  std::vector<const Node*> pending = {node};
  while (!pending.empty()) {
    const Node* next = pending.back();
    pending.pop_back();
    if (next->op() == Op::kInput || (next != node && stored.contains(next))) {
      result.leaves.insert(next);
      result.reads_reduction = result.reads_reduction || IsReduction(next);
      continue;
    }
    ++result.nodes;
    result.arithmetic += WeightOf(next, costs);
    for (const Node* operand : next->operands()) {
      // Visits each node once, unlike the estimate.
      if (seen.insert(operand).second) pending.push_back(operand);
    }
  }
  result.num_leaves = static_cast<int>(result.leaves.size());
  return result;
}

double ReadsOf(const Node* node, const Expression& expression) {
  double reads = 0;
  const double elements = static_cast<double>(std::max<int64_t>(1, ir::NumElements(node->shape())));
  for (const Node* leaf : expression.leaves) {
    // A leaf smaller than the result is read several times, but from the cache after the first.
    reads += std::min(1.0, static_cast<double>(ir::NumElements(leaf->shape())) / elements);
  }
  return reads;
}

}  // namespace kiln::partition
