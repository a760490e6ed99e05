// The part of a plan that assigns iterations to the threads of a block.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_PLAN_H_
#define KILN_COMPILER_SCHEDULE_THREADS_PLAN_H_

#include "absl/status/status.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Makes the thread axes of each stage digits of a thread's number, with the last axis of the
// stage's order as the lowest digit, and counts the threads. Requires: the orders are finished.
//
// Returns INVALID_ARGUMENT, which names the problem: a loop of threads around a barrier, which not
// all threads would reach; too many threads; or lanes together with threads.
absl::Status FinishThreads(Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_PLAN_H_
