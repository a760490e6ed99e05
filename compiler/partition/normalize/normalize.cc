#include "compiler/partition/normalize/normalize.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/contraction.h"
#include "compiler/partition/normalize/factor_sum.h"
#include "compiler/partition/normalize/merge_reductions.h"
#include "compiler/partition/normalize/shrink_contraction.h"
#include "compiler/partition/normalize/split_reduction.h"
#include "compiler/partition/normalize/windows.h"
#include "compiler/partition/reads.h"
#include "compiler/partition/tensor_maker.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

bool IsZero(const Node* node) {
  while (node->op() == Op::kExpand || node->op() == Op::kReshape) node = node->operand(0);
  return node->op() == Op::kConst && ir::IsFloat(node->dtype()) &&
         node->attr<ir::ConstValue>().AsDouble() == 0;
}

// Bound on the products that a sum is split into.
constexpr int kProductsMax = 32;
// Bound on the depth to which one sum is derived from another.
constexpr int kFactoringDepthMax = 8;

using Replacement = absl::flat_hash_map<const Node*, const Node*>;

// where(x < 0 | x == 0, 0, x), the expansion of relu.
bool IsRelu(const Node* node) {
  if (node->op() != Op::kWhere || !IsZero(node->operand(1))) return false;
  const Node* condition = node->operand(0);
  const Node* x = node->operand(2);
  if (condition->op() != Op::kOr) return false;
  // Requires the same zero node in all places, so that it can replace all of a relu's operands: -0
  // is another constant.
  const auto compares = [&](const Node* with, Op op) {
    return with->op() == op && with->operand(0) == x && with->operand(1) == node->operand(1);
  };
  return compares(condition->operand(0), Op::kCmpLt) && compares(condition->operand(1), Op::kCmpEq);
}

// One walk for all rewrites: operands first, so that the outer sum sees a merged inner sum.
class Normalizer {
 public:
  Normalizer(const graph::Graph& graph, const drivers::Limits& limits)
      : context_(*graph.context), limits_(limits), unwindow_sums_(context_) {
    const std::vector<const Node*> roots = graph::Roots(graph);
    const std::vector<const Node*> order = ir::TopologicalOrder(roots);
    const auto uses = CountUses(order, roots);
    for (const Node* node : order) {
      if (node->op() == Op::kReduceSum) sums_of_[node->operand(0)].push_back(node);
      if (!IsRelu(node)) continue;
      relus_.insert(node);
      relu_of_.try_emplace(node->operand(0), node);
    }
    for (const Node* node : order) {
      const Node* made = Rewritten(node);
      uses_[made] += uses.at(node);
    }
  }

  const Node* ReplacementOf(const Node* node) const { return replacement_.at(node); }

 private:
  const Node* Rewritten(const Node* node) {
    if (auto known = replacement_.find(node); known != replacement_.end()) return known->second;
    const Node* made = Rewrite(node);
    replacement_[node] = made;
    // A sum may be derived from one that comes later in the order, so all sums over this value are
    // recorded as soon as the value is known.
    for (const Node* sum : sums_of_[node]) sums_.insert(context_.WithOperands(sum, {made}));
    return made;
  }

  // x <= 0 is relu(x) == 0, including for NaN. Comparing the latter lets a program keep only
  // relu(x) for its backward pass.
  const Node* RewriteOperand(const Node* node, const Node* operand) {
    auto relu = relu_of_.find(operand);
    if (relu == relu_of_.end() || relus_.contains(node)) return replacement_.at(operand);
    const Node* is_zero = operand->operand(1);
    return context_.WithOperands(is_zero,
                                 {Rewritten(relu->second), replacement_.at(is_zero->operand(1))});
  }

  const Node* Rewrite(const Node* node) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(RewriteOperand(node, operand));
    const Node* current = context_.WithOperands(node, std::move(operands));
    // Some rewrites divide by sizes.
    if (ir::NumElements(SpaceOf(current)) == 0) return current;
    return NormalForm(current);
  }

  // Returns the final form of a node whose operands have their final form.
  const Node* NormalForm(const Node* current) {
    if (const Node* sum = FactoredSum(current); sum != nullptr) return sum;
    if (const Node* split = SplitProducts(current, kProductsMax); split != nullptr) return split;
    return Simplify(current);
  }

  const Node* FactoredSum(const Node* sum) {
    if (factoring_ == kFactoringDepthMax) return nullptr;
    ++factoring_;
    const Node* factored = FactorSum(context_, sum, [this](const Node* other) {
      return sums_.contains(other) ? NormalForm(other) : nullptr;
    });
    --factoring_;
    return factored;
  }

  // Splits a sum of several products into one contraction per product. (The gradient of a value
  // that feeds several matmuls has this form.)
  const Node* SplitProducts(const Node* sum, int products_max) {
    if (sum->op() != Op::kReduceSum || products_max == 0) return nullptr;
    std::vector<const Node*> movements;
    const Node* inner = sum->operand(0);
    while (IsMovement(inner) && inner->op() != Op::kContiguous && IsSingleUse(inner)) {
      movements.push_back(inner);
      inner = inner->operand(0);
    }
    if (inner->op() != Op::kAdd || !IsSingleUse(inner)) return nullptr;
    const Node* whole[2];
    const Node* split[2];
    for (const int i : {0, 1}) {
      const Node* part = inner->operand(i);
      for (size_t j = movements.size(); j-- > 0;) {
        part = context_.WithOperands(movements[j], {part});
      }
      whole[i] = context_.WithOperands(sum, {part});
      split[i] = SplitProducts(whole[i], products_max - 1);
    }
    // Other sums would only become two sums.
    const bool contracts = split[0] != nullptr || split[1] != nullptr || IsContraction(whole[0]) ||
                           IsContraction(whole[1]);
    if (!contracts) return nullptr;
    for (const int i : {0, 1}) {
      if (split[i] == nullptr) split[i] = Simplify(whole[i]);
    }
    return context_.Get(Op::kAdd, sum->dtype(), sum->shape(), {split[0], split[1]});
  }

  bool IsSingleUse(const Node* node) const {
    auto found = uses_.find(node);
    return found == uses_.end() || found->second <= 1;
  }

  const Node* Simplify(const Node* current) {
    const auto single_use = [this](const Node* inner) { return IsSingleUse(inner); };
    if (current->op() == Op::kWindow) current = ReplaceWindow(context_, current);
    if (const Node* part = ShrinkContraction(context_, current, single_use); part != nullptr) {
      return part;
    }
    // Strides are removed first, since MergeReduction only accepts unwindows with stride 1.
    if (IsReduction(current)) {
      const Node* sum = unwindow_sums_.Replace(current, single_use);
      if (sum != nullptr && !IsReduction(sum)) return sum;
      if (sum != nullptr) current = sum;
    }
    current = MergeReduction(context_, current, single_use);
    return SplitReduction(context_, current, limits_);
  }

  ir::Context& context_;
  const drivers::Limits& limits_;
  UnwindowSums unwindow_sums_;
  Replacement replacement_;
  absl::flat_hash_set<const Node*> relus_;
  absl::flat_hash_map<const Node*, const Node*> relu_of_;  // by condition
  absl::flat_hash_map<const Node*, int> uses_;
  absl::flat_hash_map<const Node*, std::vector<const Node*>> sums_of_;  // by operand
  absl::flat_hash_set<const Node*> sums_;  // of the graph, over operands in their final form
  int factoring_ = 0;                      // number of sums being derived from others
};

}  // namespace

graph::Graph Normalize(const graph::Graph& graph, const drivers::Target& target) {
  const Normalizer normalizer(graph, target.limits);
  std::vector<const Node*> roots = graph::Roots(graph);
  for (const Node*& root : roots) root = normalizer.ReplacementOf(root);
  return graph::WithRoots(graph, roots);
}

}  // namespace kiln::partition
