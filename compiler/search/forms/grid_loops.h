// The kernel's own knobs on a core with vector registers: the loops that its stages share, and
// prefetches. Only kernels of several stages have them.
#ifndef KILN_COMPILER_SEARCH_FORMS_GRID_LOOPS_H_
#define KILN_COMPILER_SEARCH_FORMS_GRID_LOOPS_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/search/knobs/knob.h"
#include "compiler/search/knobs/setting.h"
#include "compiler/search/stage/schedule_writer.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Returns the heuristic's values. Lanes run along a loop of the grid only if the stages' own loops
// are too short to fill vectors; then the stages must not have lanes of their own. Requires, as
// the other functions: schedule::SharesGrid. If
// `leading` is not null, lanes run along that range, or along none.
Values StartGrid(const kernel::Kernel& kernel, const drivers::Target& target,
                 const int64_t* leading = nullptr);
std::vector<KnobValues> GridKnobs(const kernel::Kernel& kernel, const drivers::Target& target,
                                  const Values& start);
// Returns INVALID_ARGUMENT if legal values do not fit each other.
absl::Status CheckGrid(const Values& values);

// Makes the outer loops tasks.
void WriteGrid(const Values& values, ScheduleWriter* writer);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_FORMS_GRID_LOOPS_H_
