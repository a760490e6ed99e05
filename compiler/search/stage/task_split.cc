#include "compiler/search/stage/task_split.h"

#include <algorithm>
#include <cmath>

namespace kiln::search {
namespace {

using schedule::Binding;

// Enough for threads to share work evenly.
constexpr int64_t kTasksPerThread = 32;
constexpr double kTasksMax = 1 << 20;

// Returns the smallest factor from `chunk_min` on that divides the extent in whole units, so that
// there is no ragged end. Returns `chunk_min`, rounded up to whole units, if there is none below
// twice as much.
int64_t ChunkOf(int64_t extent, int64_t chunk_min, int64_t unit) {
  chunk_min = (chunk_min + unit - 1) / unit * unit;
  for (int64_t factor = chunk_min; factor < 2 * chunk_min; factor += unit) {
    if (extent % factor == 0) return factor;
  }
  return chunk_min;
}

}  // namespace

int64_t TasksFor(double cost, const drivers::Target& target) {
  const drivers::InstructionCosts& costs = target.costs.instructions;
  if (cost < 2 * costs.task_min) return 1;
  const double shared = kTasksPerThread * std::max(target.limits.compute_units, 1);
  const double short_enough = costs.task_max > 0 ? std::ceil(cost / costs.task_max) : 1;
  const double wanted = std::max(std::min(cost / costs.task_min, shared), short_enough);
  return static_cast<int64_t>(std::min(wanted, kTasksMax));
}

int64_t AppendTasks(const std::vector<int>& axes, int64_t tasks, ScheduleWriter* writer,
                    std::vector<int>* order) {
  for (int axis : axes) {
    const int64_t extent = writer->extent(axis);
    if (tasks <= 1) {
      order->push_back(axis);
    } else if (extent <= 2 * tasks) {
      writer->Bind(axis, Binding::kTask);
      order->push_back(axis);
      // Each of these must still be cut into this many.
      tasks = (tasks + extent - 1) / extent;
    } else {
      order->push_back(AppendChunks(axis, tasks, 1, writer, order));
      tasks = 1;
    }
  }
  return tasks;
}

int64_t TasksLeft(const std::vector<int>& axes, int64_t tasks, const ScheduleWriter& writer) {
  for (const int axis : axes) {
    const int64_t extent = writer.extent(axis);
    if (tasks > 1) tasks = extent <= 2 * tasks ? (tasks + extent - 1) / extent : 1;
  }
  return tasks;
}

int64_t ChunkExtent(int64_t extent, int64_t tasks, int64_t unit) {
  return std::min(ChunkOf(extent, (extent + tasks - 1) / tasks, unit), extent);
}

int AppendChunks(int axis, int64_t tasks, int64_t unit, ScheduleWriter* writer,
                 std::vector<int>* order) {
  const int64_t chunk = ChunkExtent(writer->extent(axis), tasks, unit);
  if (chunk >= writer->extent(axis)) return axis;
  const auto [outer, inner] = writer->Split(axis, chunk);
  writer->Bind(outer, Binding::kTask);
  order->push_back(outer);
  return inner;
}

}  // namespace kiln::search
