#include "compiler/schedule/plan.h"

#include <algorithm>
#include <string>

#include "absl/status/status.h"
#include "compiler/ir/str_cat.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/schedule/blocks_of_sums.h"
#include "compiler/schedule/directives/words.h"
#include "compiler/schedule/matrix/plan.h"
#include "compiler/schedule/plan_order.h"
#include "compiler/schedule/threads/plan.h"
#include "proto/check/check.h"

namespace kiln::schedule {
namespace {

using ir::Node;

class Planner {
 public:
  explicit Planner(const kernel::Kernel& kernel) : kernel_(kernel) {}

  absl::StatusOr<Plan> Make(const Schedule& schedule) {
    AddAxes();
    for (const Directive& directive : schedule.directives) {
      absl::Status status = std::visit([this](const auto& d) { return Add(d); }, directive);
      if (!status.ok()) return status;
    }
    for (Axis& axis : plan_.axes) {
      const bool shared_out = axis.binding == Binding::kVector || axis.binding == Binding::kThread;
      if (axis.reduce && shared_out) axis.partial = true;
    }
    // Orders are checked last, since they depend on the bindings of their axes.
    absl::Status status = FinishOrders(SharesGrid(kernel_), &plan_);
    if (status.ok()) status = FinishThreads(&plan_);
    if (status.ok()) status = FinishMatrices(&plan_);
    if (status.ok()) status = CheckSkips();
    if (!status.ok()) return status;
    CutLongSums(kernel_, &plan_);
    KILN_VALIDATE(plan_, plan_.axes.size() * (1 + plan_.stages.size()));
    return std::move(plan_);
  }

 private:
  void AddAxis(const Node* range, int stage, bool reduce) {
    Axis axis;
    axis.extent = range->attr<ir::RangeAttr>().extent;
    axis.reduce = reduce;
    axis.stage = stage;
    axis.range = range;
    plan_.axes.push_back(axis);
  }

  void AddAxes() {
    plan_.stages.resize(kernel_.stages.size());
    const int grid_stage = SharesGrid(kernel_) ? -1 : 0;
    for (const Node* range : kernel_.grid) AddAxis(range, grid_stage, false);
    for (size_t i = 0; i < kernel_.stages.size(); ++i) {
      const int stage = static_cast<int>(i);
      for (const Node* range : kernel_.stages[i].ranges) AddAxis(range, stage, false);
      for (const Node* range : kernel_.stages[i].reduce_ranges) AddAxis(range, stage, true);
      for (const Node* range : kernel_.stages[i].ordered_ranges) {
        AddAxis(range, stage, false);
        plan_.axes.back().ordered = true;
      }
    }
  }

  bool IsLeaf(int axis) const {
    return axis >= 0 && axis < static_cast<int>(plan_.axes.size()) && plan_.axes[axis].leaf();
  }
  bool IsStage(int stage) const {
    return stage >= 0 && stage < static_cast<int>(plan_.stages.size());
  }

  absl::Status Add(const Fuse& fuse) {
    if (!IsLeaf(fuse.outer) || !IsLeaf(fuse.inner))
      return BadDirective(fuse.Print(), "no such axes");
    const Axis outer = plan_.axes[fuse.outer];
    const Axis inner = plan_.axes[fuse.inner];
    // A part of a split is not a range of the kernel, so it has no coefficients to compare.
    if (outer.parent >= 0 || inner.parent >= 0 || outer.stage != inner.stage ||
        outer.reduce != inner.reduce || outer.ordered || inner.ordered || outer.padded() ||
        inner.padded()) {
      return BadDirective(fuse.Print(), "the axes are not whole loops of one kind");
    }
    if (!IsContiguous(kernel_, InnermostRange(fuse.outer), InnermostRange(fuse.inner),
                      inner.extent)) {
      plan_.axes[fuse.outer].digit = plan_.axes[fuse.inner].digit = inner.extent;
    }
    Axis fused;
    fused.extent = outer.extent * inner.extent;
    fused.reduce = inner.reduce;
    fused.stage = inner.stage;
    const int number = static_cast<int>(plan_.axes.size());
    plan_.axes[fuse.outer].fused_into = number;
    plan_.axes[fuse.inner].fused_into = number;
    plan_.axes[fuse.inner].fused_as_inner = true;
    plan_.axes.push_back(fused);
    return absl::OkStatus();
  }

  // Returns the kernel's range whose value the axis carries (for a fused axis, that of its
  // innermost part), or null for a part of a split.
  const Node* InnermostRange(int number) const {
    const Axis& axis = plan_.axes[number];
    if (axis.range != nullptr) return axis.range;
    for (size_t i = 0; i < plan_.axes.size(); ++i) {
      if (plan_.axes[i].fused_into == number && plan_.axes[i].fused_as_inner) {
        return InnermostRange(static_cast<int>(i));
      }
    }
    return nullptr;
  }

  absl::Status Add(const Split& split) {
    if (!IsLeaf(split.axis)) return BadDirective(split.Print(), "no such axis");
    if (IsOuterOfPart(split.axis)) {
      return BadDirective(split.Print(),
                          "it is the outer part of a split; split the inner one instead");
    }
    if (split.factor < 1) return BadDirective(split.Print(), "the factor must be at least 1");
    Axis outer;
    outer.reduce = plan_.axes[split.axis].reduce;
    outer.ordered = plan_.axes[split.axis].ordered;
    outer.stage = plan_.axes[split.axis].stage;
    outer.parent = split.axis;
    Axis inner = outer;
    outer.extent = (plan_.axes[split.axis].extent + split.factor - 1) / split.factor;
    inner.extent = split.factor;
    const int number = static_cast<int>(plan_.axes.size());
    plan_.axes[split.axis].outer = number;
    plan_.axes[split.axis].inner = number + 1;
    plan_.axes[split.axis].factor = split.factor;
    plan_.axes.push_back(outer);
    plan_.axes.push_back(inner);
    return absl::OkStatus();
  }

  // Returns whether the axis is the outer part of a part that is not always divided evenly: its
  // number of pieces would be unknown.
  bool IsOuterOfPart(int axis) const {
    const int parent = plan_.axes[axis].parent;
    return parent >= 0 && plan_.axes[parent].outer == axis && plan_.axes[parent].parent >= 0 &&
           (plan_.axes[parent].extent % plan_.axes[parent].factor != 0 ||
            IsPartOfRaggedPiece(plan_, parent));
  }

  absl::Status Add(const Order& order) {
    if (order.stage == -1 ? !SharesGrid(kernel_) : !IsStage(order.stage)) {
      return BadDirective(order.Print(), "no such stage");
    }
    for (int axis : order.axes) {
      if (axis < 0 || axis >= static_cast<int>(plan_.axes.size())) {
        return BadDirective(order.Print(), StrCat("no axis ", axis));
      }
    }
    (order.stage == -1 ? plan_.grid_order : plan_.stages[order.stage].order) = order.axes;
    return absl::OkStatus();
  }

  absl::Status Add(const Bind& bind) {
    if (!IsLeaf(bind.axis)) return BadDirective(bind.Print(), "no such axis");
    Axis& axis = plan_.axes[bind.axis];
    if (bind.binding == Binding::kTask && axis.reduce) {
      return BadDirective(bind.Print(), "tasks cannot share a sum");
    }
    // Tasks and threads run at the same time, and lanes store at once, so none of them keeps an
    // order.
    if (axis.ordered && (bind.binding == Binding::kTask || bind.binding == Binding::kVector ||
                         bind.binding == Binding::kThread)) {
      return BadDirective(bind.Print(), "the steps of the axis must be sequential");
    }
    // The emitter halves vectors to reduce, transpose and mask them; threads halve their sums.
    const bool halved =
        bind.binding == Binding::kVector || (bind.binding == Binding::kThread && axis.reduce);
    if (halved && (axis.extent & (axis.extent - 1)) != 0) {
      return BadDirective(bind.Print(), "the extent is not a power of two");
    }
    axis.binding = bind.binding;
    return absl::OkStatus();
  }

  absl::Status Add(const Partial& partial) {
    if (!IsLeaf(partial.axis) || !plan_.axes[partial.axis].reduce) {
      return BadDirective(partial.Print(), "no such reduce axis");
    }
    plan_.axes[partial.axis].partial = true;
    return absl::OkStatus();
  }

  absl::Status Add(const Ahead& ahead) {
    if (!IsLeaf(ahead.axis)) return BadDirective(ahead.Print(), "no such axis");
    plan_.axes[ahead.axis].ahead = true;
    return absl::OkStatus();
  }

  absl::Status Add(const Pad& pad) {
    if (!IsLeaf(pad.axis)) return BadDirective(pad.Print(), "no such axis");
    Axis& axis = plan_.axes[pad.axis];
    // Locals that pass values between stages have no room for the padding.
    if (axis.ordered || SharesGrid(kernel_) || axis.parent >= 0 || axis.padded()) {
      return BadDirective(pad.Print(), "not a whole axis of a stage with its own tasks");
    }
    if (pad.multiple < 1 || axis.extent == 0) {
      return BadDirective(pad.Print(), "neither the multiple nor the extent may be 0");
    }
    axis.padded_from = axis.extent;
    axis.extent = (axis.extent + pad.multiple - 1) / pad.multiple * pad.multiple;
    return absl::OkStatus();
  }

  absl::Status Add(const StageOperand& staged) {
    if (!IsStage(staged.stage)) return BadDirective(staged.Print(), "no such stage");
    if (staged.lanes < 1 || (staged.lanes & (staged.lanes - 1)) != 0) {
      return BadDirective(staged.Print(), "the lanes must be a power of two");
    }
    for (const StageOperand::Dimension& dimension : staged.layout) {
      for (const StageOperand::Term& term : dimension) {
        if (term.coefficient == 0) {
          return BadDirective(staged.Print(), "a coefficient is 0");
        }
        if (term.axis < 0 || term.axis >= static_cast<int>(plan_.axes.size()) ||
            InnermostRange(term.axis) == nullptr) {
          return BadDirective(staged.Print(), StrCat("axis ", term.axis, " is not a range"));
        }
        // The sum alone does not determine where the axis ends.
        if (dimension.size() > 1 && plan_.axes[term.axis].padded()) {
          return BadDirective(staged.Print(), StrCat("axis ", term.axis, " is padded"));
        }
      }
    }
    plan_.stages[staged.stage].staged.push_back(staged);
    return absl::OkStatus();
  }

  absl::Status Add(const Stream& stream) {
    if (!IsStage(stream.stage)) return BadDirective(stream.Print(), "no such stage");
    plan_.stages[stream.stage].stream = true;
    return absl::OkStatus();
  }

  absl::Status Add(const Skip& skip) {
    if (!IsStage(skip.stage)) return BadDirective(skip.Print(), "no such stage");
    plan_.stages[skip.stage].skip = true;
    return absl::OkStatus();
  }

  absl::Status Add(const Prefetch& prefetch) {
    if (!IsStage(prefetch.stage)) return BadDirective(prefetch.Print(), "no such stage");
    if (prefetch.buffer < 0 || prefetch.buffer >= static_cast<int>(kernel_.buffers.size()) ||
        kernel_.buffers[prefetch.buffer].memory != kernel::Memory::kGlobal) {
      return BadDirective(prefetch.Print(), "no such buffer in memory");
    }
    if (prefetch.axis < 0 || prefetch.axis >= static_cast<int>(plan_.axes.size()) ||
        plan_.axes[prefetch.axis].range == nullptr) {
      return BadDirective(prefetch.Print(), "the axis is not a range of the kernel");
    }
    plan_.stages[prefetch.stage].prefetches.push_back(
        {prefetch.buffer, plan_.axes[prefetch.axis].range, prefetch.steps});
    return absl::OkStatus();
  }

  // The branches would be around barriers.
  absl::Status CheckSkips() const {
    for (size_t i = 0; i < plan_.stages.size(); ++i) {
      const int stage = static_cast<int>(i);
      if (plan_.stages[i].skip && (plan_.threads > 1 || plan_.stages[i].matrix)) {
        return BadDirective(Skip{stage}.Print(), "blocks of threads compute all terms");
      }
    }
    return absl::OkStatus();
  }

  const kernel::Kernel& kernel_;
  Plan plan_;
};

}  // namespace

void Plan::Validate() const {
  const auto count = static_cast<int>(axes.size());
  for (int i = 0; i < count; ++i) {
    const Axis& axis = axes[i];
    KILN_CHECK(axis.stage >= -1 && axis.stage < static_cast<int>(stages.size())) << "axis " << i;
    KILN_CHECK(axis.parent < count && axis.fused_into < count) << "axis " << i;
    KILN_CHECK(!axis.split() || axis.fused_into < 0) << "axis " << i << " is split and fused";
    if (axis.split()) {
      KILN_CHECK(axis.inner >= 0 && axis.outer < count && axis.inner < count) << "axis " << i;
      KILN_CHECK(axes[axis.outer].parent == i && axes[axis.inner].parent == i) << "axis " << i;
      KILN_CHECK_GE(axis.factor, 1) << "axis " << i;
      KILN_CHECK_EQ(axes[axis.inner].extent, axis.factor) << "axis " << i;
    }
    if (axis.parent >= 0) {
      const Axis& whole = axes[axis.parent];
      KILN_CHECK(whole.outer == i || whole.inner == i) << "axis " << i << " is no part";
      int splits = 0;
      for (int part = i; part >= 0; part = axes[part].parent) {
        KILN_CHECK_LE(++splits, count) << "axis " << i << " is a part of itself";
      }
      KILN_CHECK_EQ(whole.stage, axis.stage) << "axis " << i;
    }
    if (axis.fused_into >= 0) KILN_CHECK_GT(axis.fused_into, i);
  }
  const auto check = [&](int stage, const std::vector<int>& order) {
    std::vector<bool> has(axes.size(), false);
    for (const int axis : order) {
      KILN_CHECK(axis >= 0 && axis < count && !has[axis]) << "axis " << axis << " in an order";
      has[axis] = true;
    }
    for (int i = 0; i < count; ++i)
      KILN_CHECK_EQ(has[i], axes[i].leaf() && axes[i].stage == stage) << "axis " << i;
  };
  if (!grid_order.empty()) check(-1, grid_order);
  for (size_t i = 0; i < stages.size(); ++i) check(static_cast<int>(i), stages[i].order);
  KILN_CHECK_GE(threads, 1);
}

bool SharesGrid(const kernel::Kernel& kernel) {
  // A local lives for one point of the grid, so stages that pass values in locals must share its
  // loops.
  return kernel.stages.size() > 1 && (!kernel.grid.empty() || [&kernel] {
           return std::any_of(kernel.buffers.begin(), kernel.buffers.end(), [](const auto& buffer) {
             return buffer.memory == kernel::Memory::kLocal;
           });
         }());
}

bool IsContiguous(const kernel::Kernel& kernel, const Node* outer, const Node* inner,
                  int64_t extent) {
  // In every sum of an index the two must be digits of one number.
  std::vector<kernel::Sum> sums;
  for (const kernel::Stage& stage : kernel.stages) {
    for (const kernel::Store& store : stage.stores) {
      for (const Node* root : {store.index, store.value, store.valid}) {
        if (root != nullptr) kernel::CollectSums(root, &sums);
      }
    }
  }
  return std::all_of(sums.begin(), sums.end(), [&](const kernel::Sum& sum) {
    return sum.Coefficient(outer) == sum.Coefficient(inner) * extent;
  });
}

absl::StatusOr<Plan> MakePlan(const kernel::Kernel& kernel, const Schedule& schedule) {
  return Planner(kernel).Make(schedule);
}

}  // namespace kiln::schedule
