#include "compiler/search/grid_chooser.h"

#include <algorithm>
#include <vector>

#include "compiler/search/stage_cost.h"
#include "compiler/search/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

class GridChooser {
 public:
  GridChooser(const kernel::Kernel& kernel, const drivers::Target& target, ScheduleWriter* writer)
      : kernel_(kernel), target_(target), writer_(*writer), axes_(writer->FuseAll(writer->grid())) {
    // Arithmetic uses four bytes or more.
    int widest = 4;
    for (const kernel::Stage& stage : kernel.stages) {
      work_.push_back(WorkOf(stage));
      widest = std::max(widest, work_.back().widest);
    }
    lanes_ = std::max(target.limits.vector_bytes / widest, 1);
  }

  bool Choose() {
    double cost = CostOfStagesLanes();
    int vector = -1;
    // Every lane has its own locals, which should stay in the first-level cache.
    if (lanes_ > 1 && LocalBytes() * lanes_ <= target_.limits.near_memory_bytes / 2) {
      for (int axis : axes_) {
        const double other = CostOfGridLanes(axis);
        if (writer_.extent(axis) < lanes_ || other >= cost) continue;
        cost = other;
        vector = axis;
      }
    }
    std::vector<int> others = axes_;
    if (vector >= 0) others.erase(std::find(others.begin(), others.end(), vector));
    std::vector<int> order;
    const int64_t tasks = AppendTasks(others, TasksFor(cost, target_), &writer_, &order);
    if (vector >= 0) {
      // Tasks that are still missing are cut from the axis of the lanes.
      const int rest = tasks > 1 ? AppendChunks(vector, tasks, lanes_, &writer_, &order) : vector;
      const auto [outer, lane] = writer_.Split(rest, lanes_);
      writer_.Bind(lane, Binding::kVector);
      order.insert(order.end(), {outer, lane});
    }
    if (!order.empty()) writer_.Order(-1, order);
    return vector >= 0;
  }

 private:
  int64_t Points(size_t stage) const {
    return writer_.Product(writer_.ranges(static_cast<int>(stage)));
  }
  int64_t ReducePoints(size_t stage) const {
    return writer_.Product(writer_.reduce_ranges(static_cast<int>(stage)));
  }

  // Returns the cost with the lanes of each stage along its best axis.
  double CostOfStagesLanes() const {
    const drivers::InstructionCosts& costs = target_.costs.instructions;
    double sum = 0;
    for (size_t i = 0; i < work_.size(); ++i) {
      const int stage = static_cast<int>(i);
      double best = CostOf(work_[i], Points(i), ReducePoints(i), LaneAxis(), 1, costs);
      for (bool reduce : {false, true}) {
        for (int axis : reduce ? writer_.reduce_ranges(stage) : writer_.ranges(stage)) {
          if (lanes_ == 1 || (reduce && work_[i].reductions == 0)) continue;
          const LaneAxis along{writer_[axis].range, writer_.extent(axis), reduce};
          best = std::min(best, CostOf(work_[i], Points(i), ReducePoints(i), along, lanes_, costs));
        }
      }
      sum += best;
    }
    return sum * static_cast<double>(writer_.Product(axes_));
  }

  double CostOfGridLanes(int axis) const {
    const drivers::InstructionCosts& costs = target_.costs.instructions;
    double sum = 0;
    const LaneAxis along{writer_[axis].range, writer_.extent(axis), false};
    for (size_t i = 0; i < work_.size(); ++i) {
      sum += CostOf(work_[i], Points(i) * writer_.Product(axes_), ReducePoints(i), along, lanes_,
                    costs);
    }
    return sum;
  }

  int64_t LocalBytes() const {
    int64_t bytes = 0;
    for (const kernel::Buffer& buffer : kernel_.buffers) {
      if (buffer.memory == kernel::Memory::kLocal) {
        bytes += buffer.elements * ir::SizeOf(buffer.dtype);
      }
    }
    return bytes;
  }

  const kernel::Kernel& kernel_;
  const drivers::Target& target_;
  ScheduleWriter& writer_;
  const std::vector<int> axes_;
  std::vector<StageWork> work_;
  int lanes_ = 1;
};

}  // namespace

bool ChooseGrid(const kernel::Kernel& kernel, const drivers::Target& target,
                ScheduleWriter* writer) {
  return GridChooser(kernel, target, writer).Choose();
}

}  // namespace kiln::search
