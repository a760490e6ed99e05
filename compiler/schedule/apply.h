// Applies a schedule: the kernel's nests become explicit loops.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_H_
#define KILN_COMPILER_SCHEDULE_APPLY_H_

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"

namespace kiln::schedule {

// Thread-safe: the result has its own Context. An empty schedule is legal for every kernel: one
// task, serial loops.
//
// Extents that a split does not divide cost no check inside: where the inner axis is unrolled or
// bound to lanes the last, shorter piece is peeled into code of its own (masked lanes), elsewhere
// the inner loop gets a computed extent.
//
// INVALID_ARGUMENT: the schedule does not fit the kernel (an axis that is not there, a fuse of
// ranges that are not contiguous, a task axis inside a serial one, …); the message names the
// directive.
absl::StatusOr<LoopProgram> Apply(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_H_
