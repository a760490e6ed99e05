// Sums over threads as loops of threads. Only synchronize.cc may include this.
#ifndef KILN_COMPILER_SCHEDULE_EXPAND_REDUCTIONS_H_
#define KILN_COMPILER_SCHEDULE_EXPAND_REDUCTIONS_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Each ThreadReduce becomes a tree in shared memory: one half of the threads adds what the other
// half has, until one is left. (Harris, "Optimizing Parallel Reduction in CUDA", 2007.) The
// barriers between its levels are left to PlaceBarriers.
//
// Where `shuffling` neighbours among the threads can hand each other values, a ThreadReduce of as
// many is what they do so, and stays; of more threads, what their groups have got is then added up
// by one thread. 1: there are no such neighbours.
void ExpandReductions(LoopProgram* program, int shuffling);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_EXPAND_REDUCTIONS_H_
