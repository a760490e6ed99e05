// The schedule of the loops that the stages of a kernel share.
#ifndef KILN_COMPILER_SEARCH_GRID_CHOOSER_H_
#define KILN_COMPILER_SEARCH_GRID_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Makes the outer loops tasks. Puts lanes along one of the loops if the stages' own loops are too
// short to fill vectors; returns true then, and the stages must not have lanes of their own.
bool ChooseGrid(const kernel::Kernel& kernel, const drivers::Target& target,
                ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_GRID_CHOOSER_H_
