// Makes the cooperation of a block's threads explicit: the last step before an emitter.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_SYNCHRONIZE_H_
#define KILN_COMPILER_SCHEDULE_THREADS_SYNCHRONIZE_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Requires: Apply made the program, and it is proved. If tasks have threads:
//  * Copies one step ahead get their two buffers (run_ahead.h).
//  * Sums over threads become trees, or exchanges between `shuffling` adjacent threads without
//    memory (expand_reductions.h).
//  * Where several threads would write the same value, only one of them writes.
//  * Barriers are placed where they are needed (place_barriers.h).
// Other programs stay as they are. Thread-safe, if no other thread uses program.context.
LoopProgram Synchronize(LoopProgram program, int shuffling = 1);

// Returns whether a barrier is in a branch. All threads take the same branch, but not every OpenCL
// C compiler can tell.
bool HasBarrierInBranch(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_SYNCHRONIZE_H_
