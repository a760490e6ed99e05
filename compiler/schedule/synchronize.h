// What the threads of a block must do together, made explicit: the last step before an emitter.
#ifndef KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_
#define KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Of a program that Apply made, which was proved already. Where tasks have threads:
//  * Copies that run ahead get their two places (run_ahead.h).
//  * Sums over threads become trees, or what `shuffling` neighbours do without memory
//    (expand_reductions.h).
//  * What several threads would write alike is written by one of them.
//  * Barriers stand where they are needed (place_barriers.h).
// Other programs stay as they are. Thread-safe, if nobody else uses program.context.
LoopProgram Synchronize(LoopProgram program, int shuffling = 1);

// Whether a barrier stands in a branch. All threads take the same one, but not every compiler of
// OpenCL C sees that.
bool HasBarrierInBranch(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_
