// Turns a setting into a schedule: the only place where directives come from.
#ifndef KILN_COMPILER_SEARCH_WRITE_SETTING_H_
#define KILN_COMPILER_SEARCH_WRITE_SETTING_H_

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/knobs/setting.h"
#include "drivers/interface/target.h"

namespace kiln::search {

// Requires: each stage has all knobs of its form, with legal values that fit each other; so has
// the kernel, if it has knobs. The planner may still refuse the schedule: Space::Check.
schedule::Schedule WriteSetting(const kernel::Kernel& kernel, const drivers::Target& target,
                                const Setting& setting);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_WRITE_SETTING_H_
