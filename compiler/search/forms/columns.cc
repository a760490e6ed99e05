#include "compiler/search/forms/columns.h"

#include <algorithm>

#include "compiler/search/forms/lanes.h"
#include "compiler/search/stage/lane_chooser.h"
#include "compiler/search/stage/task_split.h"

namespace kiln::search {
namespace {

using schedule::Binding;

// The number of rows that are added up at once.
constexpr int64_t kRows = 8;
constexpr int64_t kTriedRows = 32;
constexpr int64_t kTriedVectors = 8;
// The minimum number of columns that a task sums: the pieces of rows are long enough for
// prefetchers.
constexpr int64_t kColumns = 256;
// The maximum number of columns, whose sums still fit the first-level cache.
constexpr int64_t kColumnsMax = 2048;

struct Pieces {
  int64_t columns = 1;  // tasks that the columns are cut into
  bool outermost = false;
};

// Cuts columns that the other loops have too few tasks for, or whose sums would not stay cached.
Pieces CutColumns(const StageView& view, int vector, int64_t tasks) {
  if (view.shared) return {};
  const int64_t columns = view.axes.extent(vector);
  const int64_t missing =
      std::min(TasksLeft(AxesWithout(view.parallel, vector), tasks, view.axes),
               std::max<int64_t>(columns / kColumns, view.target.limits.compute_units));
  const int64_t pieces = std::max(missing, (columns + kColumnsMax - 1) / kColumnsMax);
  // If the other loops are not all tasks, those of the columns come before them.
  return {pieces, pieces > 1 && missing <= 1};
}

int64_t StartRows(const StageView& view, int vector, int64_t pieces, int64_t block) {
  const int64_t columns = ChunkExtent(view.axes.extent(vector), pieces, block);
  const bool several = columns > block && columns <= 2 * kColumnsMax;
  return several && view.axes.extent(view.reduce.back()) > kRows ? kRows : 1;
}

}  // namespace

std::optional<Values> StartColumnLanes(const StageView& view, const int64_t* leading) {
  if (view.reduce.empty()) return std::nullopt;
  const StageWork work = WorkOf(view.stage());
  const LaneChoice choice = BestLanes(view, work, false, leading);
  if (choice.axis < 0) return std::nullopt;
  const int lanes = LanesFor(view, work, choice.axis);
  const int64_t vectors = StartVectors(view, work, choice.axis, lanes);
  const int64_t tasks = StartTasks(view, choice.cost);
  const Pieces pieces = CutColumns(view, choice.axis, tasks);
  return Values{{Knob::kLaneAxis, view.axes.RangeOf(choice.axis)},
                {Knob::kLanes, lanes},
                {Knob::kVectors, vectors},
                {Knob::kRows, StartRows(view, choice.axis, pieces.columns, lanes * vectors)},
                {Knob::kTasks, tasks},
                {Knob::kLaneChunks, pieces.columns},
                {Knob::kTaskOrder, pieces.outermost},
                {Knob::kNonTemporal, StartNonTemporal(view)}};
}

std::vector<KnobValues> ColumnLanesKnobs(const StageView& view, const Values& start) {
  const StageWork work = WorkOf(view.stage());
  const int64_t rows = view.axes.extent(view.reduce.back());
  const int lane_axis = view.Find(view.parallel, start[Knob::kLaneAxis]);
  const int64_t columns = view.axes.extent(lane_axis);
  return {Axes(Knob::kLaneAxis, view, LaneAxes(view, work, false)),
          LanesKnob(view, work, lane_axis),
          Powers(Knob::kVectors, 1, kTriedVectors),
          Powers(Knob::kRows, 1, std::min(kTriedRows, rows)),
          TasksKnob(view, start),
          view.shared ? Only(Knob::kLaneChunks, 1)
                      : Doubling(Knob::kLaneChunks, start[Knob::kLaneChunks], 1, columns),
          Switch(Knob::kTaskOrder, !view.shared),
          Switch(Knob::kNonTemporal, MayBeNonTemporal(view))};
}

absl::Status CheckColumnLanes(const StageView& view, const Values& values) {
  const int64_t sums = values[Knob::kVectors] * WorkOf(view.stage()).reductions;
  if (sums > view.target.limits.vector_registers) return Unfit("the sums do not fit the registers");
  if (values[Knob::kTaskOrder] == 1 && values[Knob::kLaneChunks] == 1) {
    return Unfit("the columns have no tasks that could come first");
  }
  return absl::OkStatus();
}

void WriteColumnLanes(const StageView& view, const Values& values, ScheduleWriter* writer) {
  const int vector = view.Find(view.parallel, values[Knob::kLaneAxis]);
  const int64_t lanes = values[Knob::kLanes];
  const int64_t block_lanes = lanes * values[Knob::kVectors];
  std::vector<int> order, chunks;
  AppendTasks(AxesWithout(view.parallel, vector), values[Knob::kTasks], writer, &order);
  int rest = vector;
  if (values[Knob::kLaneChunks] > 1) {
    rest = AppendChunks(vector, values[Knob::kLaneChunks], block_lanes, writer, &chunks);
  }
  const bool first = values[Knob::kTaskOrder] == 1;
  order.insert(first ? order.begin() : order.end(), chunks.begin(), chunks.end());
  const auto [outer, block] = writer->Split(rest, block_lanes);
  const auto [copy, lane] = writer->Split(block, lanes);
  writer->Bind(copy, Binding::kUnroll);
  writer->Bind(lane, Binding::kVector);
  if (values[Knob::kRows] > 1) {
    const auto [rows, row] = writer->Split(view.reduce.back(), values[Knob::kRows]);
    AppendAxes(AxesWithout(view.reduce, view.reduce.back()), &order);
    AppendAxes({rows, outer, row, copy, lane}, &order);
  } else {
    order.push_back(outer);
    AppendAxes(view.reduce, &order);
    AppendAxes({copy, lane}, &order);
  }
  FinishLanes(view, values, order, writer);
}

}  // namespace kiln::search
