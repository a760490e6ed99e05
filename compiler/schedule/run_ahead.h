// Behind the proof: loops whose copies run ahead (ahead.h) become what they say.
#ifndef KILN_COMPILER_SCHEDULE_RUN_AHEAD_H_
#define KILN_COMPILER_SCHEDULE_RUN_AHEAD_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// A loop over r < n that begins with copies P(r) to shared memory and goes on with R(r) becomes
//   P(0) to the first place
//   for i < n/2:  P(2i+1) to the second, R(2i), P(2i+2) to the first if 2i+2 < n, R(2i+1)
//   R(n-1), if n is odd
// Two bodies in each step, so that both places have constant addresses and barriers are placed for
// each by itself. Loops whose copies read what the kernel writes, or of unknown length, stay.
void RunAhead(LoopProgram* program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_RUN_AHEAD_H_
