// Schedules for contractions: one factor is packed into panels of vector lanes, rows of the other
// are broadcast against them, and a tile of sums is in registers. (Goto and van de Geijn, "Anatomy
// of high-performance matrix multiplication", 2008.)
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_CHOOSER_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_CHOOSER_H_

#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/contraction.h"
#include "compiler/search/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Writes the stage's schedule and returns true if it is a contraction that gains from panels.
// Otherwise returns false and writes nothing. Requires: the stage does not share a grid.
bool ChooseContraction(const kernel::Kernel& kernel, int stage, const std::vector<int>& parallel,
                       const std::vector<int>& reduce, const drivers::Target& target,
                       ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_CHOOSER_H_
