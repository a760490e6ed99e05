// The schedule of a stage: which axis the lanes of vectors stand along, which loops are tasks, and
// the order of the rest.
#ifndef KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// One stage; of a kernel whose stages share no grid, with its tasks. `grid_lanes`: lanes stand
// along a loop of the grid already.
void ChooseStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                 bool grid_lanes, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
