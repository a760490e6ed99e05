#include "compiler/schedule/plan_order.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {
namespace {

bool IsWithin(const Plan& plan, int axis, int ancestor) {
  for (; axis >= 0; axis = plan.axes[axis].parent) {
    if (axis == ancestor) return true;
  }
  return false;
}

// Returns the axis that was split into this one, directly or through others, or the axis itself.
int WholeOf(const Plan& plan, int axis) {
  while (plan.axes[axis].parent >= 0) axis = plan.axes[axis].parent;
  return axis;
}

// Returns whether all pieces are full, those of the axis and those of all splits that it comes
// from.
bool IsSplitEvenly(const Plan& plan, int axis) {
  for (; axis >= 0; axis = plan.axes[axis].parent) {
    if (plan.axes[axis].extent % plan.axes[axis].factor != 0) return false;
  }
  return true;
}

// Returns whether, at every level of splitting, the outer axis is before this inner axis. The order
// does not matter if all pieces have the same length and their steps may run in any order.
bool OuterStandsBefore(const Plan& plan, const std::vector<int>& order, size_t position) {
  for (int axis = order[position]; plan.axes[axis].parent >= 0; axis = plan.axes[axis].parent) {
    const Axis& parent = plan.axes[plan.axes[axis].parent];
    if (parent.inner != axis) continue;
    if (!parent.ordered && IsSplitEvenly(plan, plan.axes[axis].parent)) continue;
    for (size_t i = position + 1; i < order.size(); ++i) {
      if (IsWithin(plan, order[i], parent.outer)) return false;
    }
  }
  return true;
}

std::vector<int> LeavesOf(const Plan& plan, int stage) {
  std::vector<int> leaves;
  for (bool reduce : {false, true}) {
    for (size_t i = 0; i < plan.axes.size(); ++i) {
      const Axis& axis = plan.axes[i];
      if (axis.leaf() && axis.stage == stage && axis.reduce == reduce) {
        leaves.push_back(static_cast<int>(i));
      }
    }
  }
  return leaves;
}

absl::Status CheckOrder(const Plan& plan, const std::string& name, const std::vector<int>& order) {
  bool tasks_end = false;
  int vectors = 0;
  int last_ordered = -1;
  for (size_t i = 0; i < order.size(); ++i) {
    const Axis& axis = plan.axes[order[i]];
    if (axis.binding == Binding::kTask && tasks_end) {
      return BadDirective(name, "a task inside a loop");
    }
    // The number of tasks is fixed before it is known which piece they are in.
    if (axis.binding == Binding::kTask && IsPartOfRaggedPiece(plan, order[i])) {
      return BadDirective(name, "tasks of a piece that may be shorter");
    }
    tasks_end |= axis.binding != Binding::kTask;
    vectors += axis.binding == Binding::kVector ? 1 : 0;
    if (!OuterStandsBefore(plan, order, i)) {
      return BadDirective(name, "an inner axis before its outer one");
    }
    if (!axis.ordered) continue;
    // Axes are numbered in the kernel's order, in which ordered ranges must run.
    const int whole = WholeOf(plan, order[i]);
    if (whole < last_ordered) return BadDirective(name, "ordered axes in another order");
    last_ordered = whole;
  }
  const bool grid_vector =
      std::any_of(plan.grid_order.begin(), plan.grid_order.end(),
                  [&plan](int axis) { return plan.axes[axis].binding == Binding::kVector; });
  if (&order != &plan.grid_order && grid_vector && vectors > 0) {
    return BadDirective(name, "lanes inside the lanes of the grid");
  }
  return vectors <= 1 ? absl::OkStatus() : BadDirective(name, "two axes bound to lanes");
}

// Operands are staged with their own lanes, which may not be inside other lanes.
absl::Status CheckStaged(const Plan& plan, const StagePlan& stage) {
  auto is_vector = [&plan](int axis) { return plan.axes[axis].binding == Binding::kVector; };
  const bool inside_grid = std::any_of(plan.grid_order.begin(), plan.grid_order.end(), is_vector);
  const auto lanes = std::find_if(stage.order.begin(), stage.order.end(), is_vector);
  for (const StageOperand& staged : stage.staged) {
    if (inside_grid || std::find(lanes, stage.order.end(), staged.at) != stage.order.end()) {
      return BadDirective(staged.Print(), "lanes inside lanes");
    }
  }
  return absl::OkStatus();
}

absl::Status FinishOrder(const Plan& plan, int stage, std::vector<int>* order) {
  std::vector<int> leaves = LeavesOf(plan, stage);
  if (order->empty()) *order = leaves;
  std::vector<int> sorted = *order;
  std::sort(sorted.begin(), sorted.end());
  std::sort(leaves.begin(), leaves.end());
  const std::string name = Order{stage, *order}.Print();
  if (sorted != leaves) return BadDirective(name, "not each of the stage's axes once");
  return CheckOrder(plan, name, *order);
}

}  // namespace

bool IsPartOfRaggedPiece(const Plan& plan, int axis) {
  for (; plan.axes[axis].parent >= 0; axis = plan.axes[axis].parent) {
    const Axis& parent = plan.axes[plan.axes[axis].parent];
    if (parent.inner == axis && parent.extent % parent.factor != 0) return true;
  }
  return false;
}

absl::Status FinishOrders(bool shares_grid, Plan* plan) {
  if (shares_grid) {
    absl::Status status = FinishOrder(*plan, -1, &plan->grid_order);
    if (!status.ok()) return status;
  }
  for (size_t i = 0; i < plan->stages.size(); ++i) {
    absl::Status status = FinishOrder(*plan, static_cast<int>(i), &plan->stages[i].order);
    if (!status.ok()) return status;
    status = CheckStaged(*plan, plan->stages[i]);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace kiln::schedule
