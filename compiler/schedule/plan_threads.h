// The part of a plan that says which thread of a block has which iterations.
#ifndef KILN_COMPILER_SCHEDULE_PLAN_THREADS_H_
#define KILN_COMPILER_SCHEDULE_PLAN_THREADS_H_

#include "absl/status/status.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Makes the axes of each stage that are bound to threads digits of a thread's number, the last in
// the stage's order being the last digit, and counts the threads. Orders must be finished.
//
// INVALID_ARGUMENT names what cannot be: a loop of threads around a place where all of a block must
// meet, since not all of them get there; too many threads; lanes beside them.
absl::Status FinishThreads(Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PLAN_THREADS_H_
