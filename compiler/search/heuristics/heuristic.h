// The schedule that a kernel gets without a search, on a core with vector registers.
#ifndef KILN_COMPILER_SEARCH_HEURISTICS_HEURISTIC_H_
#define KILN_COMPILER_SEARCH_HEURISTICS_HEURISTIC_H_

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/knobs/setting.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Deterministic and quick: it measures nothing. Apply accepts the schedule for this kernel.
Setting ChooseSetting(const kernel::Kernel& kernel, const drivers::Target& target);
// Returns the schedule of this setting.
schedule::Schedule Choose(const kernel::Kernel& kernel, const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_HEURISTICS_HEURISTIC_H_
