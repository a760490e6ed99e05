// Schedules for machines whose lanes are threads.
#ifndef KILN_COMPILER_SEARCH_THREAD_CHOOSER_H_
#define KILN_COMPILER_SEARCH_THREAD_CHOOSER_H_

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Blocks of threads for each task where that gains something (block_chooser.h). Else a task for
// each point of what runs in parallel, which adds up its sums itself, several partial ones side by
// side: many small tasks, of which a block of threads takes neighbours. Deterministic; always a
// schedule that Apply accepts for this kernel.
schedule::Schedule ChooseThreads(const kernel::Kernel& kernel, const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_THREAD_CHOOSER_H_
