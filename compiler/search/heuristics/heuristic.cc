#include "compiler/search/heuristics/heuristic.h"

#include "compiler/schedule/plan.h"
#include "compiler/search/forms/forms.h"
#include "compiler/search/forms/grid_loops.h"
#include "compiler/search/heuristics/stage_chooser.h"
#include "compiler/search/write_setting.h"

namespace kiln::search {

Setting ChooseSetting(const kernel::Kernel& kernel, const drivers::Target& target) {
  Setting setting;
  bool grid_lanes = false;
  if (schedule::SharesGrid(kernel)) {
    const Values grid = StartGrid(kernel, target);
    grid_lanes = grid[Knob::kLaneAxis] >= 0;
    setting.parts[kKernelPart] = grid;
  }
  schedule::Schedule scratch;
  ScheduleWriter axes(kernel, &scratch);
  for (size_t i = 0; i < kernel.stages.size(); ++i) {
    const int stage = static_cast<int>(i);
    const StageView view = FuseStage(kernel, stage, target, &axes);
    setting.parts[stage] = *StartOf(view, ChooseStageForm(view, grid_lanes));
  }
  return setting;
}

schedule::Schedule Choose(const kernel::Kernel& kernel, const drivers::Target& target) {
  return WriteSetting(kernel, target, ChooseSetting(kernel, target));
}

}  // namespace kiln::search
