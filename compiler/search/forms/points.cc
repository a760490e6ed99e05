#include "compiler/search/forms/points.h"

#include <algorithm>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/stage/lane_chooser.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// The steps of a block that is copied at once if the two sides of a copy are contiguous along
// different axes, so that whole cache lines are used while they are cached.
constexpr int64_t kBlock = 32;
// The maximum number of operations for each point if such blocks are squares transposed in
// registers; for the heuristic, and for a search.
constexpr int64_t kSquareOperations = 12;
constexpr int64_t kTriedOperations = 48;
// The maximum number of operations for each point, with those of its unrolled sum.
constexpr int64_t kTriedUnrolled = 640;

int LaneAxisOf(const StageView& view, const Values& values) {
  return view.Find(view.parallel, values[Knob::kLaneAxis]);
}

int NearAxis(const StageView& view, const StageWork& work, int lane_axis) {
  return ContiguousElsewhere(work, lane_axis, AxesWithout(view.parallel, lane_axis), view.axes);
}

bool HasShortSum(const StageView& view, const StageWork& work) {
  return view.reduce.empty() || UnrollsSum(view, work) ||
         view.axes.Product(view.reduce) * std::max(work.inside_operations, 1) <= kTriedUnrolled;
}

bool FormsSquares(const StageView& view, const StageWork& work, int lane_axis, int64_t lanes) {
  const int near = NearAxis(view, work, lane_axis);
  return near >= 0 && view.reduce.empty() && view.axes.extent(near) >= lanes &&
         view.axes.extent(lane_axis) >= lanes && work.outside_operations <= kTriedOperations;
}

}  // namespace

std::optional<Values> StartPointLanes(const StageView& view, const int64_t* leading) {
  const StageWork work = WorkOf(view.stage());
  if (!view.stage().ordered_ranges.empty() || !HasShortSum(view, work)) return std::nullopt;
  const LaneChoice choice = BestLanes(view, work, false, leading);
  if (choice.axis < 0) return std::nullopt;
  const int near = NearAxis(view, work, choice.axis);
  std::vector<int> others = AxesWithout(view.parallel, choice.axis);
  if (near >= 0) others = AxesWithout(others, near);
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(choice.axis)},
                {Knob::kLanes, LanesFor(view, work, choice.axis)},
                {Knob::kSharedSteps, HasSharedSteps(view, work, others)},
                {Knob::kBlock, near < 0 ? 1 : std::min(kBlock, view.axes.extent(near))},
                {Knob::kTasks, StartTasks(view, choice.cost)},
                {Knob::kNonTemporal, StartNonTemporal(view)}};
}

std::vector<KnobValues> PointLanesKnobs(const StageView& view, const Values& start) {
  const StageWork work = WorkOf(view.stage());
  const int near = NearAxis(view, work, LaneAxisOf(view, start));
  const int64_t block_max = near < 0 ? 1 : std::min(2 * kBlock, view.axes.extent(near));
  return {Axes(Knob::kLaneAxis, view, LaneAxes(view, work, false)),
          LanesKnob(view, work, LaneAxisOf(view, start)),
          Switch(Knob::kSharedSteps, HasSharedSteps(view, work, view.parallel)),
          Doubling(Knob::kBlock, start[Knob::kBlock], 1, block_max),
          TasksKnob(view, start),
          Switch(Knob::kNonTemporal, MayBeNonTemporal(view))};
}

void WritePointLanes(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const StageWork work = WorkOf(view.stage());
  const int vector = LaneAxisOf(view, values);
  const int64_t lanes = values[Knob::kLanes];
  std::vector<int> others = AxesWithout(view.parallel, vector);
  std::vector<int> order, steps;
  const int near = values[Knob::kBlock] > 1 ? NearAxis(view, work, vector) : -1;
  if (near >= 0) others = AxesWithout(others, near);
  others = ShareSteps(view, values, others, writer, &steps);
  int block = -1;
  if (near >= 0) {
    const auto [blocks, inside] = writer->Split(near, values[Knob::kBlock]);
    others.push_back(blocks);
    block = inside;
  }
  const int64_t tasks = AppendTasks(others, values[Knob::kTasks], writer, &order);
  const int rest = tasks > 1 ? AppendChunks(vector, tasks, lanes, writer, &order) : vector;
  const auto [outer, lane] = writer->Split(rest, lanes);
  order.push_back(outer);
  if (block >= 0) order.push_back(block);
  AppendAxes(steps, &order);
  writer->Bind(lane, Binding::kVector);
  order.push_back(lane);
  for (const int axis : view.reduce) {
    writer->Bind(axis, Binding::kUnroll);
    order.push_back(axis);
  }
  FinishLanes(view, values, order, writer);
}

bool PrefersSquares(const StageView& view, const StageWork& work, int lane_axis) {
  return FormsSquares(view, work, lane_axis, LanesFor(view, work, lane_axis)) &&
         work.outside_operations <= kSquareOperations;
}

std::optional<Values> StartSquares(const StageView& view, const int64_t* leading) {
  if (!view.stage().ordered_ranges.empty()) return std::nullopt;
  const StageWork work = WorkOf(view.stage());
  const LaneChoice choice = BestLanes(view, work, false, leading);
  if (choice.axis < 0) return std::nullopt;
  const int lanes = LanesFor(view, work, choice.axis);
  if (!FormsSquares(view, work, choice.axis, lanes)) return std::nullopt;
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(choice.axis)},
                {Knob::kLanes, lanes},
                {Knob::kTasks, StartTasks(view, choice.cost)},
                {Knob::kNonTemporal, StartNonTemporal(view)}};
}

std::vector<KnobValues> SquaresKnobs(const StageView& view, const Values& start) {
  const StageWork work = WorkOf(view.stage());
  return {Axes(Knob::kLaneAxis, view, LaneAxes(view, work, false)),
          LanesKnob(view, work, LaneAxisOf(view, start)), TasksKnob(view, start),
          Switch(Knob::kNonTemporal, MayBeNonTemporal(view))};
}

absl::Status CheckSquares(const StageView& view, const Values& values) {
  const StageWork work = WorkOf(view.stage());
  if (FormsSquares(view, work, LaneAxisOf(view, values), values[Knob::kLanes])) {
    return absl::OkStatus();
  }
  return Unfit("no loop is contiguous where the lanes are not, and as long as the lanes");
}

// The innermost loop of squares runs along memory: rows of lines that the prefetchers follow.
void WriteSquares(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const int vector = LaneAxisOf(view, values);
  const int near = NearAxis(view, WorkOf(view.stage()), vector);
  const int64_t lanes = values[Knob::kLanes];
  std::vector<int> order;
  const std::vector<int> others = AxesWithout(AxesWithout(view.parallel, vector), near);
  const int64_t tasks = AppendTasks(others, values[Knob::kTasks], writer, &order);
  const int rest = tasks > 1 ? AppendChunks(vector, tasks, lanes, writer, &order) : vector;
  const auto [outer, lane] = writer->Split(rest, lanes);
  const auto [squares, row] = writer->Split(near, lanes);
  writer->Bind(row, Binding::kUnroll);
  writer->Bind(lane, Binding::kVector);
  AppendAxes({outer, squares, row, lane}, &order);
  FinishLanes(view, values, order, writer);
}

}  // namespace kiln::search
