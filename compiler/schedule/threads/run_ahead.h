// Expands loops with copies one step ahead (directives/ahead.h). Runs after the proof.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_RUN_AHEAD_H_
#define KILN_COMPILER_SCHEDULE_THREADS_RUN_AHEAD_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// A loop over r < n that begins with copies P(r) to shared memory and continues with R(r) becomes
//   P(0) to the first buffer
//   for i < n/2: P(2i+1) to the second, R(2i), P(2i+2) to the first if 2i+2 < n, R(2i+1)
//   R(n-1), if n is odd
// Each step has two bodies, so that both buffers have constant addresses and barriers are placed
// for each separately. Loops whose copies read data that the kernel writes, and loops of unknown
// length, stay as they are.
void RunAhead(LoopProgram* program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_RUN_AHEAD_H_
