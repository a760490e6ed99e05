#include "compiler/search/scatter_chooser.h"

#include <algorithm>

#include "compiler/search/stage_cost.h"
#include "compiler/search/task_split.h"

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

// Returns the axis along which one position's elements are contiguous in memory, or -1.
int FindLanes(const kernel::Stage& stage, const std::vector<int>& parallel, int lanes,
              const ScheduleWriter& writer) {
  for (const int axis : parallel) {
    if (2 * writer.extent(axis) < lanes) continue;
    const LaneAccess access = AccessAlong(stage.stores[0].index, writer[axis].range);
    if (access == LaneAccess::kWhole) return axis;
  }
  return -1;
}

}  // namespace

void ChooseScatter(const kernel::Kernel& kernel, int number, const std::vector<int>& parallel,
                   const drivers::Target& target, ScheduleWriter* writer) {
  const kernel::Stage& stage = kernel.stages[number];
  const StageWork work = WorkOf(stage);
  const int lanes = std::max(target.limits.vector_bytes / std::max(work.widest, 4), 1);
  const int vector = lanes == 1 ? -1 : FindLanes(stage, parallel, lanes, *writer);
  const int64_t steps = writer->Product(parallel) * writer->Product(writer->ordered_ranges(number));
  const double cost = static_cast<double>(steps) * (work.outside_operations + kPositionCost) /
                      (vector < 0 ? 1 : lanes);
  std::vector<int> others = parallel;
  if (vector >= 0) others.erase(std::find(others.begin(), others.end(), vector));
  std::vector<int> order;
  int64_t tasks = AppendTasks(others, TasksFor(cost, target), writer, &order);
  int rest = vector;
  if (vector >= 0 && tasks > 1) {
    const int64_t tasks_max = std::max<int64_t>(writer->extent(vector) / (kVectorsMin * lanes), 1);
    tasks =
        std::min({tasks, tasks_max, kRowTasksPerThread * std::max(target.limits.compute_units, 1)});
    rest = AppendChunks(vector, tasks, lanes, writer, &order);
  }
  const std::vector<int>& ordered = writer->ordered_ranges(number);
  order.insert(order.end(), ordered.begin(), ordered.end());
  if (vector >= 0) {
    const auto [outer, lane] = writer->Split(rest, lanes);
    writer->Bind(lane, Binding::kVector);
    order.insert(order.end(), {outer, lane});
  }
  writer->Order(number, order);
}

}  // namespace kiln::search
