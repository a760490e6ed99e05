#include "compiler/search/thread_chooser.h"

#include <vector>

#include "compiler/schedule/plan.h"
#include "compiler/search/schedule_writer.h"

namespace kiln::search {
namespace {

void MakeTasks(const std::vector<int>& axes, ScheduleWriter* writer) {
  for (const int axis : axes) writer->Bind(axis, schedule::Binding::kTask);
}

// Of a kernel whose stages share no loops.
void ChooseStageThreads(const kernel::Kernel& kernel, int stage, ScheduleWriter* writer) {
  std::vector<int> order = writer->grid();
  order.insert(order.end(), writer->ranges(stage).begin(), writer->ranges(stage).end());
  order = writer->FuseAll(order);
  MakeTasks(order, writer);
  const bool scatters = !kernel.stages[stage].ordered_ranges.empty();
  const std::vector<int>& serial =
      scatters ? writer->ordered_ranges(stage) : writer->reduce_ranges(stage);
  order.insert(order.end(), serial.begin(), serial.end());
  if (!order.empty()) writer->Order(stage, order);
}

}  // namespace

schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target) {
  schedule::Schedule schedule;
  ScheduleWriter writer(kernel, &schedule);
  if (schedule::SharesGrid(kernel)) {
    const std::vector<int> grid = writer.FuseAll(writer.grid());
    MakeTasks(grid, &writer);
    if (!grid.empty()) writer.Order(-1, grid);
    return schedule;
  }
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    ChooseStageThreads(kernel, static_cast<int>(i), &writer);
  }
  return schedule;
}

}  // namespace kiln::search
