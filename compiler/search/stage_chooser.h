// The schedule of a stage: the axis of the vector lanes, the loops that become tasks, and the order
// of the others.
#ifndef KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Writes the schedule of one stage, with its tasks if the kernel's stages share no grid.
// `grid_lanes`: a loop of the grid already has lanes.
void ChooseStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                 bool grid_lanes, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
