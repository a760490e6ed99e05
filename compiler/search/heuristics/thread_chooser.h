// The schedule that a kernel gets without a search, on machines whose lanes are threads.
#ifndef KILN_COMPILER_SEARCH_HEURISTICS_THREAD_CHOOSER_H_
#define KILN_COMPILER_SEARCH_HEURISTICS_THREAD_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/knobs/setting.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Uses blocks of threads for each task if that gains something (block_chooser.h). Otherwise a task
// computes one point of the parallel loops, with all of its sums, in several partial sums. These
// are many small tasks, and a block of threads runs adjacent ones. Deterministic. Apply accepts the
// schedule for this kernel.
Setting ChooseThreadSetting(const kernel::Kernel& kernel, const drivers::Target& target);
// Returns the schedule of this setting.
schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_HEURISTICS_THREAD_CHOOSER_H_
