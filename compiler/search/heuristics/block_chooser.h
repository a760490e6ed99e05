// The heuristic for schedules in which a block of threads runs each task: rows shared by threads,
// sums over threads, contractions in tiles whose factors are in shared memory.
#ifndef KILN_COMPILER_SEARCH_HEURISTICS_BLOCK_CHOOSER_H_
#define KILN_COMPILER_SEARCH_HEURISTICS_BLOCK_CHOOSER_H_

#include <optional>

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/knobs/setting.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Returns nullopt if the kernel gains nothing from blocks, or if they would exceed the target's
// limits with the smallest tiles, too. Deterministic. Apply accepts the schedule for this kernel.
std::optional<Setting> ChooseBlockSetting(const kernel::Kernel& kernel,
                                          const drivers::Target& target);
// Returns the schedule of this setting.
std::optional<schedule::Schedule> ChooseBlocks(const kernel::Kernel& kernel,
                                               const drivers::Target& target);

// Returns INVALID_ARGUMENT, with the reason, if the schedule's blocks exceed the target's limits or
// if Apply refuses it.
absl::Status CheckBlocks(const kernel::Kernel& kernel, const drivers::Target& target,
                         const schedule::Schedule& schedule);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_HEURISTICS_BLOCK_CHOOSER_H_
