#include "compiler/search/forms/grid_loops.h"

#include <algorithm>

#include "compiler/search/forms/forms.h"
#include "compiler/search/stage/cost.h"
#include "compiler/search/stage/prefetch_chooser.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// Rows between a prefetch and its use: the heuristic's choice, and the most that a search tries.
constexpr int64_t kPrefetchRows = 1;
constexpr int64_t kTriedPrefetchRows = 8;

// Chooses the values.
class GridChooser {
 public:
  GridChooser(const kernel::Kernel& kernel, const drivers::Target& target,
              const ScheduleWriter& axes, std::vector<int> grid)
      : kernel_(kernel), target_(target), writer_(axes), axes_(std::move(grid)) {
    // Arithmetic uses four bytes or more.
    int widest = 4;
    for (const kernel::Stage& stage : kernel.stages) {
      work_.push_back(WorkOf(stage));
      widest = std::max(widest, work_.back().widest);
    }
    lanes_ = std::max(target.limits.vector_bytes / widest, 1);
  }

  Values Choose(const int64_t* leading) const {
    double cost = CostOfStagesLanes();
    int vector = -1;
    for (const int axis : LaneAxes()) {
      const double other = CostOfGridLanes(axis);
      const bool chosen = leading == nullptr ? other < cost : writer_.RangeOf(axis) == *leading;
      if (!chosen) continue;
      cost = other;
      vector = axis;
    }
    const bool prefetches = vector < 0 && !PrefetchedBuffers(kernel_, target_).empty();
    return {{Knob::kLaneAxis, vector < 0 ? -1 : writer_.RangeOf(vector)},
            {Knob::kLanes, vector < 0 ? 1 : lanes_},
            {Knob::kTasks, TasksFor(cost, target_)},
            {Knob::kPrefetch, prefetches ? kPrefetchRows : 0}};
  }

  int lanes() const { return lanes_; }
  std::vector<int> LaneAxes() const {
    // Every lane has its own locals, which should stay in the first-level cache.
    std::vector<int> axes;
    if (lanes_ == 1 || LocalBytes() * lanes_ > target_.limits.near_memory_bytes / 2) return axes;
    for (const int axis : axes_) {
      if (writer_.extent(axis) >= lanes_) axes.push_back(axis);
    }
    return axes;
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
      double best = CostOf(work_[i], Points(i), ReducePoints(i), LaneAxis{}, 1, costs);
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
  const ScheduleWriter& writer_;
  const std::vector<int> axes_;
  std::vector<StageWork> work_;
  int lanes_ = 1;
};

// A chooser, and the axes that it looks at.
class GridView {
 public:
  GridView(const kernel::Kernel& kernel, const drivers::Target& target)
      : writer_(kernel, &scratch_),
        grid_(writer_.FuseAll(writer_.grid())),
        chooser_(kernel, target, writer_, grid_) {}

  const GridChooser& chooser() const { return chooser_; }
  int64_t Points() const { return writer_.Product(grid_); }
  std::vector<int64_t> LaneRanges() const {
    std::vector<int64_t> ranges;
    for (const int axis : chooser_.LaneAxes()) ranges.push_back(writer_.RangeOf(axis));
    return ranges;
  }

 private:
  schedule::Schedule scratch_;
  ScheduleWriter writer_;
  const std::vector<int> grid_;
  const GridChooser chooser_;
};

}  // namespace

Values StartGrid(const kernel::Kernel& kernel, const drivers::Target& target,
                 const int64_t* leading) {
  return GridView(kernel, target).chooser().Choose(leading);
}

std::vector<KnobValues> GridKnobs(const kernel::Kernel& kernel, const drivers::Target& target,
                                  const Values& start) {
  const GridView view(kernel, target);
  KnobValues lane_axis = {Knob::kLaneAxis, view.LaneRanges()};
  lane_axis.values.push_back(-1);
  const int64_t rows_max = PrefetchedBuffers(kernel, target).empty() ? 0 : kTriedPrefetchRows;
  return {lane_axis, Powers(Knob::kLanes, 1, view.chooser().lanes()),
          Doubling(Knob::kTasks, start[Knob::kTasks], 1, view.Points()),
          Doubling(Knob::kPrefetch, std::min(kPrefetchRows, rows_max), 0, rows_max)};
}

absl::Status CheckGrid(const Values& values) {
  const bool has_lanes = values[Knob::kLaneAxis] >= 0;
  if (has_lanes == (values[Knob::kLanes] > 1)) return absl::OkStatus();
  return Unfit("lanes without a loop, or the reverse");
}

void WriteGrid(const Values& values, ScheduleWriter* writer) {
  std::vector<int> others = writer->FuseAll(writer->grid());
  int vector = -1;
  for (const int axis : others) {
    if (writer->RangeOf(axis) == values[Knob::kLaneAxis]) vector = axis;
  }
  if (vector >= 0) others.erase(std::find(others.begin(), others.end(), vector));
  std::vector<int> order;
  const int64_t tasks = AppendTasks(others, values[Knob::kTasks], writer, &order);
  if (vector >= 0) {
    const int64_t lanes = values[Knob::kLanes];
    // Tasks that are still missing are cut from the axis of the lanes.
    const int rest = tasks > 1 ? AppendChunks(vector, tasks, lanes, writer, &order) : vector;
    const auto [outer, lane] = writer->Split(rest, lanes);
    writer->Bind(lane, Binding::kVector);
    order.insert(order.end(), {outer, lane});
  }
  if (!order.empty()) writer->Order(-1, order);
}

}  // namespace kiln::search
