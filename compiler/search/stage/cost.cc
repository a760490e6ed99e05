#include "compiler/search/stage/cost.h"

#include <algorithm>
#include <cstdlib>

#include "absl/container/flat_hash_set.h"
#include "compiler/kernel/index_sum.h"

namespace kiln::search {
namespace {

using ir::Node;
using ir::Op;

class Counter {
 public:
  explicit Counter(StageWork* work) : work_(*work) {}

  void Visit(const Node* node, bool inside) {
    // A value used both within the reduction and after it is computed in both places.
    if (!seen_[inside ? 1 : 0].insert(node).second) return;
    switch (node->op()) {
      case Op::kConst:
      case Op::kRange:
        return;
      case Op::kReduce:
        ++work_.reductions;
        ++work_.inside_operations;
        Visit(node->operand(0), true);
        return;
      case Op::kLoad:
        work_.accesses.push_back(
            {node->operand(0), static_cast<int>(node->attr<ir::IntAttr>().value), false, inside});
        work_.widest = std::max(work_.widest, ir::SizeOf(node->dtype()));
        if (node->operands().size() > 1) Visit(node->operand(1), inside);
        return;
      default:
        ++(inside ? work_.inside_operations : work_.outside_operations);
        for (const Node* operand : node->operands()) Visit(operand, inside);
    }
  }

 private:
  StageWork& work_;
  absl::flat_hash_set<const Node*> seen_[2];
};

// Returns whether the atom is an idiv or mod of a sum in which the range has the coefficient 1.
bool IsDigitOf(const Node* atom, const Node* range) {
  return (atom->op() == Op::kIDiv || atom->op() == Op::kMod) &&
         kernel::SumOf(atom->operand(0)).Coefficient(range) == 1;
}

double AccessCost(const StageWork::Access& access, const Node* range, bool masked,
                  const drivers::InstructionCosts& costs) {
  const LaneAccess along = AccessAlong(access.index, range);
  if (along == LaneAccess::kUniform) return costs.broadcast;
  if (along == LaneAccess::kWhole) {
    return (access.store ? costs.store : costs.load) + (masked ? costs.masked : 0);
  }
  if (access.store) return costs.scatter;
  return along == LaneAccess::kShuffled ? costs.shuffled_load : costs.gather;
}

}  // namespace

StageWork WorkOf(const kernel::Stage& stage) {
  StageWork work;
  Counter counter(&work);
  for (const kernel::Store& store : stage.stores) {
    work.accesses.push_back({store.index, store.buffer, true, false});
    work.widest = std::max(work.widest, ir::SizeOf(store.value->dtype()));
    counter.Visit(store.value, false);
  }
  return work;
}

LaneAccess AccessAlong(const Node* index, const Node* range) {
  const kernel::Sum sum = kernel::SumOf(index);
  const int64_t step = std::abs(sum.Coefficient(range));
  bool near = step == 2;
  bool far = step > 2;
  for (const auto& [atom, coefficient] : sum.terms) {
    if (atom == range || !kernel::DependsOn(atom, range)) continue;
    (IsDigitOf(atom, range) && coefficient == 1 ? near : far) = true;
  }
  if (far) return LaneAccess::kScattered;
  if (near) return LaneAccess::kShuffled;
  return step == 1 ? LaneAccess::kWhole : LaneAccess::kUniform;
}

int64_t SharedSteps(const StageWork& work, const Node* range) {
  int64_t steps = 1;
  for (const StageWork::Access& access : work.accesses) {
    for (const auto& [atom, coefficient] : kernel::SumOf(access.index).terms) {
      if (atom->op() != Op::kIDiv || atom->operand(1)->op() != Op::kConst) continue;
      if (kernel::SumOf(atom->operand(0)).Coefficient(range) != 1) continue;
      const int64_t divisor = atom->operand(1)->attr<ir::ConstValue>().AsInt();
      if (divisor <= 4) steps = std::max(steps, divisor);
    }
  }
  return steps;
}

double CostOf(const StageWork& work, int64_t points, int64_t reduce_points, const LaneAxis& axis,
              int lanes, const drivers::InstructionCosts& costs) {
  double inside = work.inside_operations;
  double outside = work.outside_operations;
  const bool vector = axis.range != nullptr;
  const bool masked = vector && axis.extent % lanes != 0;
  for (const StageWork::Access& access : work.accesses) {
    // Lanes along a reduction no longer exist in the code after it.
    const bool lanes_here = vector && (access.inside || !axis.reduce);
    (access.inside ? inside : outside) +=
        lanes_here ? AccessCost(access, axis.range, masked, costs) : 1;
  }
  double inner = static_cast<double>(points) * static_cast<double>(reduce_points);
  double outer = static_cast<double>(points);
  if (!vector) return inner * inside + outer * outside;
  // A ragged last vector costs as much as a full one.
  const double share = static_cast<double>((axis.extent + lanes - 1) / lanes) /
                       static_cast<double>(std::max<int64_t>(axis.extent, 1));
  inner *= share;
  if (axis.reduce) {
    outside += costs.horizontal * work.reductions;
  } else {
    outer *= share;
  }
  return inner * inside + outer * outside;
}

}  // namespace kiln::search
