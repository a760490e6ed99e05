#include "compiler/schedule/threads/plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include "compiler/ir/str_cat.h"
#include "compiler/schedule/directives/words.h"

namespace kiln::schedule {
namespace {

// The maximum for any GPU. The schedule heuristics know the limit of the device.
constexpr int64_t kThreadsMax = 1024;

bool IsThread(const Plan& plan, int axis) { return plan.axes[axis].binding == Binding::kThread; }

// The sum over threads is combined after the stage's reduce loops, so no loop of threads may be
// around all of them. No loop of threads may be inside those of the sum, so that adjacent threads
// share a sum.
absl::Status CheckSum(const Plan& plan, const std::string& name, const std::vector<int>& order) {
  bool in_reduction = false;
  bool around = false;
  int sums = 0;
  for (const int axis : order) {
    in_reduction |= plan.axes[axis].reduce;
    if (!IsThread(plan, axis)) continue;
    if (sums > 0) return BadDirective(name, "threads inside the threads of a sum");
    around |= !in_reduction;
    sums += plan.axes[axis].reduce ? 1 : 0;
  }
  if (sums > 0 && around) return BadDirective(name, "the threads of a sum inside other threads");
  return absl::OkStatus();
}

absl::Status CheckStaged(const Plan& plan, const StagePlan& stage, bool has_threads) {
  for (const StageOperand& staged : stage.staged) {
    if (!has_threads && staged.lanes == 1) {
      return BadDirective(staged.Print(), "the lanes must be 2 or more");
    }
    for (const int axis : stage.order) {
      if (staged.at < 0) break;
      if (IsThread(plan, axis)) {
        return BadDirective(staged.Print(),
                            "all of a block's threads stage: not inside a loop of "
                            "some");
      }
      if (axis == staged.at) break;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckAhead(const Plan& plan) {
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    if (!plan.axes[i].ahead) continue;
    const int axis = static_cast<int>(i);
    bool staged = false;
    for (const StagePlan& stage : plan.stages) {
      for (const StageOperand& operand : stage.staged) staged |= operand.at == axis;
    }
    if (!staged || plan.axes[i].binding != Binding::kSerial || plan.threads == 1) {
      return BadDirective(Ahead{axis}.Print(), "threads stage nothing in such a loop");
    }
  }
  return absl::OkStatus();
}

// Padding is only for threads; lanes have masks for their ends.
absl::Status CheckPadded(const Plan& plan) {
  if (plan.threads > 1) return absl::OkStatus();
  for (size_t i = 0; i < plan.axes.size(); ++i) {
    if (!plan.axes[i].padded()) continue;
    return BadDirective(Pad{static_cast<int>(i), plan.axes[i].extent}.Print(),
                        "there are no threads");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status FinishThreads(Plan* plan) {
  for (const int axis : plan->grid_order) {
    if (IsThread(*plan, axis)) {
      return BadDirective(Order{-1, plan->grid_order}.Print(), "threads around whole stages");
    }
  }
  for (size_t i = 0; i < plan->stages.size(); ++i) {
    const StagePlan& stage = plan->stages[i];
    const std::string name = Order{static_cast<int>(i), stage.order}.Print();
    int64_t threads = 1;
    for (auto axis = stage.order.rbegin(); axis != stage.order.rend(); ++axis) {
      if (!IsThread(*plan, *axis)) continue;
      plan->axes[*axis].stride = threads;
      if (plan->axes[*axis].extent > kThreadsMax / threads) {
        return BadDirective(name, StrCat("more than ", kThreadsMax, " threads"));
      }
      threads *= plan->axes[*axis].extent;
    }
    if (absl::Status status = CheckSum(*plan, name, stage.order); !status.ok()) return status;
    plan->threads = std::max(plan->threads, static_cast<int>(threads));
  }
  for (size_t axis = 0; axis < plan->axes.size() && plan->threads > 1; ++axis) {
    if (plan->axes[axis].binding == Binding::kVector) {
      return BadDirective(Bind{static_cast<int>(axis), Binding::kVector}.Print(),
                          "lanes inside of threads");
    }
  }
  for (const StagePlan& stage : plan->stages) {
    absl::Status status = CheckStaged(*plan, stage, plan->threads > 1);
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckPadded(*plan); !status.ok()) return status;
  return CheckAhead(*plan);
}

}  // namespace kiln::schedule
