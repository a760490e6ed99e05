// What the threads of a block must do together, made explicit: the last step before an emitter.
#ifndef KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_
#define KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Of a program that Apply made, which was proved already. Where tasks have threads:
//  * A ThreadReduce becomes a tree in shared memory: one half of the threads adds what the other
//    half has, until one is left. (Harris, "Optimizing Parallel Reduction in CUDA", 2007.)
//  * What several threads would write alike is written by one of them.
//  * Barriers stand where a thread could read or overwrite what another one wrote or has yet to
//    read.
// Other programs stay as they are. Thread-safe, if nobody else uses program.context.
LoopProgram Synchronize(LoopProgram program);

// Whether a barrier stands in a branch. All threads take the same one, but not every compiler of
// OpenCL C sees that.
bool HasBarrierInBranch(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_SYNCHRONIZE_H_
