// A stage as heuristics and the writers of forms see it: its loops after fusing.
#ifndef KILN_COMPILER_SEARCH_STAGE_VIEW_H_
#define KILN_COMPILER_SEARCH_STAGE_VIEW_H_

#include <cstdint>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/stage/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

struct StageView {
  const kernel::Kernel& kernel;
  const int number;
  const drivers::Target& target;
  const ScheduleWriter& axes;
  const bool shared;  // the stages run inside shared loops, so that this one has no tasks
  // Axes, outermost first. `parallel` includes the grid unless it is shared.
  std::vector<int> parallel;
  std::vector<int> reduce;

  const kernel::Stage& stage() const { return kernel.stages[static_cast<size_t>(number)]; }
  // Returns the axis of `among` that the knobs of kind kAxis name `range`, or -1.
  int Find(const std::vector<int>& among, int64_t range) const;
  // Returns the names of the axes.
  std::vector<int64_t> Names(const std::vector<int>& of) const;
};

// Fuses the stage's loops where they are contiguous. The view refers to all arguments.
StageView FuseStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                    ScheduleWriter* writer);
// Returns the stage's loops as they are.
StageView ViewStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                    const ScheduleWriter& writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_VIEW_H_
