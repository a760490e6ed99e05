#include "compiler/search/write_setting.h"

#include "compiler/schedule/plan.h"
#include "compiler/search/forms/forms.h"
#include "compiler/search/forms/grid_loops.h"
#include "compiler/search/stage/prefetch_chooser.h"

namespace kiln::search {
namespace {

// Where lanes are threads, every point of a shared grid is a task.
void WriteGridTasks(ScheduleWriter* writer) {
  const std::vector<int> grid = writer->FuseAll(writer->grid());
  for (const int axis : grid) writer->Bind(axis, schedule::Binding::kTask);
  if (!grid.empty()) writer->Order(-1, grid);
}

void WriteStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                const Values& values, ScheduleWriter* writer) {
  const FormRow& row = RowOf(values.form());
  row.write(row.fuses ? FuseStage(kernel, stage, target, writer)
                      : ViewStage(kernel, stage, target, *writer),
            values, writer);
}

}  // namespace

schedule::Schedule WriteSetting(const kernel::Kernel& kernel, const drivers::Target& target,
                                const Setting& setting) {
  schedule::Schedule schedule;
  ScheduleWriter writer(kernel, &schedule);
  const auto own = setting.parts.find(kKernelPart);
  if (own != setting.parts.end()) {
    WriteGrid(own->second, &writer);
  } else if (schedule::SharesGrid(kernel)) {
    WriteGridTasks(&writer);
  }
  for (const auto& [stage, values] : setting.parts) {
    if (stage != kKernelPart) WriteStage(kernel, stage, target, values, &writer);
  }
  if (own != setting.parts.end()) {
    WritePrefetches(kernel, target, own->second[Knob::kPrefetch], &writer);
  }
  return schedule;
}

}  // namespace kiln::search
