#include "compiler/search/heuristic.h"

#include <algorithm>

#include "compiler/schedule/plan.h"
#include "compiler/search/grid_chooser.h"
#include "compiler/search/prefetch_chooser.h"
#include "compiler/search/stage_chooser.h"

namespace kiln::search {

schedule::Schedule Choose(const kernel::Kernel& kernel, const drivers::Target& target) {
  schedule::Schedule schedule;
  ScheduleWriter writer(kernel, &schedule);
  const bool shared = schedule::SharesGrid(kernel);
  const bool grid_lanes = shared && ChooseGrid(kernel, target, &writer);
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    ChooseStage(kernel, static_cast<int>(i), target, grid_lanes, &writer);
  }
  if (shared && !grid_lanes) ChoosePrefetches(kernel, target, &writer);
  return schedule;
}

}  // namespace kiln::search
