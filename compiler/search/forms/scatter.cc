#include "compiler/search/forms/scatter.h"

#include <algorithm>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/stage/cost.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// The cost of a position in addition to its arithmetic: its index, the test, and reading and
// writing the element.
constexpr int kPositionCost = 6;
// Tasks for each thread, if they cut rows: shorter pieces of rows waste memory bandwidth.
constexpr int64_t kRowTasksPerThread = 2;
// The minimum number of vectors in a piece of a row.
constexpr int64_t kVectorsMin = 4;

int ScatterLanes(const StageView& view) {
  const int widest = WorkOf(view.stage()).widest;
  return std::max(view.target.limits.vector_bytes / std::max(widest, 4), 1);
}

// Returns the axes along which one position's elements are contiguous in memory.
std::vector<int> RowAxes(const StageView& view) {
  std::vector<int> axes;
  const int lanes = ScatterLanes(view);
  for (const int axis : view.parallel) {
    if (lanes == 1 || 2 * view.axes.extent(axis) < lanes) continue;
    const LaneAccess access = AccessAlong(view.stage().stores[0].index, view.axes[axis].range);
    if (access == LaneAccess::kWhole) axes.push_back(axis);
  }
  return axes;
}

int64_t StartPieces(const StageView& view, int vector, int64_t tasks) {
  const int64_t left = TasksLeft(AxesWithout(view.parallel, vector), tasks, view.axes);
  if (vector < 0 || left <= 1) return 1;
  const int64_t longest = view.axes.extent(vector) / (kVectorsMin * ScatterLanes(view));
  return std::min({left, std::max<int64_t>(longest, 1),
                   kRowTasksPerThread * std::max(view.target.limits.compute_units, 1)});
}

int ChooseRowAxis(const StageView& view, const int64_t* leading) {
  const std::vector<int> axes = RowAxes(view);
  if (leading != nullptr) return view.Find(axes, *leading);
  return axes.empty() ? -1 : axes[0];
}

}  // namespace

std::optional<Values> StartScatter(const StageView& view, const int64_t* leading) {
  const std::vector<int>& ordered = view.axes.ordered_ranges(view.number);
  if (ordered.empty()) return std::nullopt;
  const int vector = ChooseRowAxis(view, leading);
  const int lanes = vector < 0 ? 1 : ScatterLanes(view);
  const int64_t steps = view.axes.Product(view.parallel) * view.axes.Product(ordered);
  const double cost = static_cast<double>(steps) *
                      (WorkOf(view.stage()).outside_operations + kPositionCost) / lanes;
  const int64_t tasks = TasksFor(cost, view.target);
  return Values{{Knob::kLaneAxis, vector < 0 ? -1 : view.axes.RangeOf(vector)},
                {Knob::kLanes, lanes},
                {Knob::kTasks, tasks},
                {Knob::kLaneChunks, StartPieces(view, vector, tasks)}};
}

std::vector<KnobValues> ScatterKnobs(const StageView& view, const Values& start) {
  KnobValues lane_axis = Axes(Knob::kLaneAxis, view, RowAxes(view));
  lane_axis.values.push_back(-1);
  const int64_t points = view.axes.Product(view.parallel);
  return {lane_axis, Powers(Knob::kLanes, 1, ScatterLanes(view)),
          Doubling(Knob::kTasks, start[Knob::kTasks], 1, points),
          Doubling(Knob::kLaneChunks, start[Knob::kLaneChunks], 1, points)};
}

absl::Status CheckScatter(const StageView& /*view*/, const Values& values) {
  const bool has_lanes = values[Knob::kLaneAxis] >= 0;
  if (has_lanes != (values[Knob::kLanes] > 1)) return Unfit("lanes without a loop, or the reverse");
  if (!has_lanes && values[Knob::kLaneChunks] > 1) return Unfit("there is no loop of lanes to cut");
  return absl::OkStatus();
}

void WriteScatter(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const int vector = view.Find(view.parallel, values[Knob::kLaneAxis]);
  const int64_t lanes = values[Knob::kLanes];
  std::vector<int> order;
  AppendTasks(AxesWithout(view.parallel, vector), values[Knob::kTasks], writer, &order);
  int rest = vector;
  if (values[Knob::kLaneChunks] > 1) {
    rest = AppendChunks(vector, values[Knob::kLaneChunks], lanes, writer, &order);
  }
  AppendAxes(view.axes.ordered_ranges(view.number), &order);
  if (vector >= 0) {
    const auto [outer, lane] = writer->Split(rest, lanes);
    writer->Bind(lane, Binding::kVector);
    AppendAxes({outer, lane}, &order);
  }
  writer->Order(view.number, order);
}

}  // namespace kiln::search
