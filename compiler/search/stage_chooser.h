// Schedules for the parts of a kernel, by what kind of loops they are.
#ifndef KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
#define KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/search/axis_book.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// The shared loops of a kernel of several stages. True if lanes stand along one of them.
bool ChooseGrid(const kernel::Kernel& kernel, const drivers::Target& target, AxisBook* book);

// One stage; of a kernel whose stages share no grid, with its tasks.
void ChooseStage(const kernel::Kernel& kernel, int stage, const drivers::Target& target,
                 bool grid_lanes, AxisBook* book);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_STAGE_CHOOSER_H_
