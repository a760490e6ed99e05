// Schedules in which a block of threads runs each task: rows that threads share, sums over threads,
// contractions in tiles whose factors stand in shared memory.
#ifndef KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_
#define KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_

#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Nothing where threads that share no work do as well, or the target has no such blocks. What is
// chosen keeps to the target's limits of threads and shared memory. Deterministic.
std::optional<schedule::Schedule> ChooseBlocks(const kernel::Kernel& kernel,
                                               const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_
