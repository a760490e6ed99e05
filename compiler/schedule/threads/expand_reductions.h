// Turns sums over threads into loops of threads. Only synchronize.cc may include this.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_EXPAND_REDUCTIONS_H_
#define KILN_COMPILER_SCHEDULE_THREADS_EXPAND_REDUCTIONS_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Turns each ThreadReduce into a tree in shared memory: one half of the threads adds the other
// half's values, until one is left. (Harris, "Optimizing Parallel Reduction in CUDA", 2007.)
// PlaceBarriers adds the barriers between its levels.
//
// `shuffling` is how many adjacent threads can exchange values without memory; 1: none can. A
// ThreadReduce over that many threads stays as it is. In one over more threads, one thread then
// adds up the results of these groups.
void ExpandReductions(LoopProgram* program, int shuffling);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_EXPAND_REDUCTIONS_H_
