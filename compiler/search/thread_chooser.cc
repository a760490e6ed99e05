#include "compiler/search/thread_chooser.h"

#include <vector>

#include "compiler/schedule/plan.h"
#include "compiler/search/block_chooser.h"
#include "compiler/search/partial_sums.h"
#include "compiler/search/schedule_writer.h"

namespace kiln::search {
namespace {

void MakeTasks(const std::vector<int>& axes, ScheduleWriter* writer) {
  for (const int axis : axes) writer->Bind(axis, schedule::Binding::kTask);
}

// `tasks`: the loops that become tasks.
void ChooseStageThreads(const kernel::Kernel& kernel, int stage, const std::vector<int>& tasks,
                        const std::vector<int>& points, ScheduleWriter* writer) {
  MakeTasks(tasks, writer);
  std::vector<int> order = tasks;
  order.insert(order.end(), points.begin(), points.end());
  const bool scatters = !kernel.stages[stage].ordered_ranges.empty();
  const std::vector<int> serial =
      scatters ? writer->ordered_ranges(stage)
               : CutSums(writer->FuseAll(writer->reduce_ranges(stage)), writer);
  order.insert(order.end(), serial.begin(), serial.end());
  if (!order.empty()) writer->Order(stage, order);
}

}  // namespace

schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target) {
  if (auto blocks = ChooseBlocks(kernel, target)) return *std::move(blocks);
  schedule::Schedule schedule;
  ScheduleWriter writer(kernel, &schedule);
  const bool shared = schedule::SharesGrid(kernel);
  if (shared) {
    const std::vector<int> grid = writer.FuseAll(writer.grid());
    MakeTasks(grid, &writer);
    if (!grid.empty()) writer.Order(-1, grid);
  }
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    if (shared) {
      ChooseStageThreads(kernel, stage, {}, writer.ranges(stage), &writer);
      continue;
    }
    std::vector<int> tasks = writer.grid();
    tasks.insert(tasks.end(), writer.ranges(stage).begin(), writer.ranges(stage).end());
    ChooseStageThreads(kernel, stage, writer.FuseAll(tasks), {}, &writer);
  }
  return schedule;
}

}  // namespace kiln::search
