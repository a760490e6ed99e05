// Applies a schedule: turns the kernel's nests into explicit loops.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_APPLY_H_
#define KILN_COMPILER_SCHEDULE_APPLY_APPLY_H_

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"

namespace kiln::schedule {

// Thread-safe: the result has its own Context. An empty schedule is legal for every kernel: one
// task, serial loops.
//
// Extents that a split does not divide need no check in the innermost loop. If the inner axis is
// unrolled or bound to lanes, the last, shorter piece is peeled into separate code (with masked
// lanes); otherwise the inner loop gets a computed extent.
//
// Returns INVALID_ARGUMENT if the schedule does not fit the kernel (a missing axis, a fuse of
// ranges that are not contiguous, a task axis inside a serial one, …); the message names the
// directive.
absl::StatusOr<LoopProgram> Apply(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_APPLY_H_
