#include "compiler/kernel/merge_ranges.h"

#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"
#include "compiler/kernel/index.h"
#include "compiler/kernel/index_sum.h"
#include "proto/check/check.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

// A future range: the old ranges that it joins, outermost first.
struct Joined {
  std::vector<const Node*> parts;
  int64_t extent = 1;
};

class Merger {
 public:
  Merger(Kernel* kernel, ir::Context& context)
      : kernel_(kernel), context_(context), math_(context) {}

  void Run() {
    CollectSums();
    std::vector<const Node*> grid = Replace(kernel_->grid);
    for (Stage& stage : kernel_->stages) {
      stage.ranges = Replace(stage.ranges);
      stage.reduce_ranges = Replace(stage.reduce_ranges);
      stage.ordered_ranges = Replace(stage.ordered_ranges, /*in_order=*/true);
      for (Store& store : stage.stores) RebuildStore(stage, &store);
    }
    kernel_->grid = std::move(grid);
  }

 private:
  static bool IsSum(const Node* node) {
    if (node->dtype() != ir::DType::kInt64) return false;
    if (node->op() == Op::kAdd || node->op() == Op::kSub) return true;
    return node->op() == Op::kMul && node->operand(1)->op() == Op::kConst;
  }

  void CollectSums() {
    absl::flat_hash_set<const Node*> seen;
    auto collect = [&](const Node* node) {
      if (node == nullptr || node->dtype() != ir::DType::kInt64) return;
      if (node->op() != Op::kConst && seen.insert(node).second) sums_.push_back(math_.ToSum(node));
    };
    std::vector<const Node*> roots;
    for (const Stage& stage : kernel_->stages) {
      for (const Store& store : stage.stores) {
        collect(store.index);
        collect(store.value);
        roots.insert(roots.end(), {store.index, store.value, store.valid});
      }
    }
    for (const Node* node : ir::TopologicalOrder(roots)) {
      // A sum within a sum is checked as part of the larger one.
      if (IsSum(node)) continue;
      const size_t used = node->op() == Op::kReduce ? 1 : node->operands().size();
      for (size_t i = 0; i < used; ++i) collect(node->operand(static_cast<int>(i)));
    }
  }

  // Returns whether outer and inner are, in every sum, adjacent digits of one number.
  bool Mergeable(const Joined& outer, const Joined& inner) const {
    const Node* high = outer.parts.back();
    const Node* low = inner.parts.front();
    // The parts of one Joined already merge, so its last part determines its coefficient.
    const int64_t low_extent = inner.extent;
    const int64_t low_unit = inner.extent / low->attr<ir::RangeAttr>().extent;
    for (const Sum& sum : sums_) {
      const int64_t unit = sum.Coefficient(inner.parts.back());
      if (sum.Coefficient(high) != unit * low_extent) return false;
      if (sum.Coefficient(low) != unit * low_unit) return false;
    }
    return true;
  }

  // Merges within one list, makes the new ranges, and records the replacements of the old ones.
  // `in_order`: the order of their points must be kept.
  std::vector<const Node*> Replace(const std::vector<const Node*>& ranges, bool in_order = false) {
    std::vector<Joined> list;
    for (const Node* range : ranges) {
      list.push_back({{range}, range->attr<ir::RangeAttr>().extent});
    }
    bool changed = true;
    while (changed) {
      changed = false;
      for (size_t i = 0; i < list.size() && !changed; ++i) {
        for (size_t j = 0; j < list.size() && !changed; ++j) {
          // Loops of one list may run in any order, so ranges need not be adjacent to merge.
          if (i == j || (in_order && j != i + 1) || !Mergeable(list[i], list[j])) continue;
          list[i].parts.insert(list[i].parts.end(), list[j].parts.begin(), list[j].parts.end());
          list[i].extent *= list[j].extent;
          list.erase(list.begin() + static_cast<std::ptrdiff_t>(j));
          changed = true;
        }
      }
    }
    std::vector<const Node*> result;
    for (const Joined& joined : list) {
      if (joined.extent != 1) result.push_back(math_.Range(joined.extent));
      const Node* whole = joined.extent == 1 ? math_.Constant(0) : result.back();
      // The old ranges are digits of the new one; in the sums that contain them all, the divisions
      // cancel.
      int64_t stride = joined.extent;
      for (const Node* part : joined.parts) {
        const int64_t extent = part->attr<ir::RangeAttr>().extent;
        stride /= extent;
        const auto [known, is_new] =
            replacement_.try_emplace(part, math_.Mod(math_.Div(whole, stride), extent));
        KILN_CHECK(is_new) << "range " << part->id() << " is in two lists";
      }
      // The old ranges are all digits of the new one.
      KILN_CHECK_EQ(stride, 1);
    }
    return result;
  }

  void RebuildStore(const Stage& stage, Store* store) {
    reduce_ranges_ = stage.reduce_ranges;
    store->index = Rebuild(store->index);
    store->value = Rebuild(store->value);
    if (store->valid != nullptr) store->valid = RebuildCondition(store->valid);
  }

  const Node* RebuildCondition(const Node* condition) {
    return math_.ToNode(math_.ToValidity(Rebuild(condition)));
  }

  const Node* Rebuild(const Node* root) {
    for (const Node* node : ir::TopologicalOrder({&root, 1})) {
      if (!replacement_.contains(node)) replacement_[node] = RebuildNode(node);
    }
    return replacement_.at(root);
  }

  const Node* RebuildNode(const Node* node) {
    if (node->operands().empty()) return node;
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(replacement_.at(operand));
    if (node->op() == Op::kReduce) {
      // Reductions run over the stage's new ranges.
      operands.resize(1);
      operands.insert(operands.end(), reduce_ranges_.begin(), reduce_ranges_.end());
      // All reduce ranges had extent 1: the only term is the result.
      if (reduce_ranges_.empty()) return operands[0];
    }
    if (node->op() == Op::kLoad) operands = LoadOperands(node, operands);
    const Node* rebuilt = context_.Get(node->op(), node->dtype(), {}, operands, node->attribute());
    return IsArithmetic(node) ? SimplifyTop(rebuilt) : rebuilt;
  }

  // Accesses that were in bounds still are; if that is harder to prove with the new ranges, adds a
  // condition. A scatter's load has its store's condition.
  std::vector<const Node*> LoadOperands(const Node* load, absl::Span<const Node* const> operands) {
    const Node* index = operands[0];
    Validity valid = math_.ToValidity(operands.size() == 2 ? operands[1] : nullptr);
    const Buffer& buffer = kernel_->buffers[load->attr<ir::IntAttr>().value];
    if (buffer.access != Access::kUpdate && !valid.never) {
      const Interval bounds = math_.BoundsOf(index, valid);
      if (bounds.low < 0 || bounds.high >= buffer.elements) {
        math_.Require(valid, index, 0, buffer.elements);
      }
    }
    const Node* condition = math_.ToNode(valid);
    if (condition == nullptr) return {index};
    return {index, condition};
  }

  static bool IsArithmetic(const Node* node) {
    if (node->dtype() != ir::DType::kInt64) return false;
    if (IsSum(node)) return true;
    return (node->op() == Op::kIDiv || node->op() == Op::kMod) && Divisor(node) > 0;
  }

  // The operands are in canonical form already.
  const Node* SimplifyTop(const Node* node) {
    const Node* a = node->operand(0);
    const Node* b = node->operand(1);
    switch (node->op()) {
      case Op::kAdd:
        return math_.Add(a, b);
      case Op::kSub:
        return math_.Sub(a, b);
      case Op::kMul:
        return math_.Mul(a, b->attr<ir::ConstValue>().AsInt());
      case Op::kIDiv:
        return math_.Div(a, Divisor(node));
      default:
        return math_.Mod(a, Divisor(node));
    }
  }

  Kernel* kernel_;
  ir::Context& context_;
  IndexMath math_;
  std::vector<Sum> sums_;
  std::vector<const Node*> reduce_ranges_;
  absl::flat_hash_map<const Node*, const Node*> replacement_;
};

}  // namespace

void MergeRanges(Kernel* kernel, ir::Context& context) { Merger(kernel, context).Run(); }

}  // namespace kiln::kernel
