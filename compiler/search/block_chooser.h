// Schedules in which a block of threads runs each task: rows shared by threads, sums over threads,
// contractions in tiles whose factors are in shared memory.
#ifndef KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_
#define KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_

#include <optional>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Returns nullopt if threads that share no work do as well, or if the target has no such blocks.
// The schedule respects the target's limits of threads and shared memory. Deterministic.
std::optional<schedule::Schedule> ChooseBlocks(const kernel::Kernel& kernel,
                                               const drivers::Target& target);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_BLOCK_CHOOSER_H_
