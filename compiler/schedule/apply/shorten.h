// Loops that end early where a run's data leaves nothing to do.
//
// A sum over positions of which only the first `n` count, where n is loaded, is masked: a term is
// zero unless position < n. Its loop ends at n, instead of adding zeros.
#ifndef KILN_COMPILER_SCHEDULE_APPLY_SHORTEN_H_
#define KILN_COMPILER_SCHEDULE_APPLY_SHORTEN_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Gives a serial loop an extent if, from some iteration on, a condition is false without which no
// store of its body has an effect. The condition must compare a sum of ranges with a number loaded
// from a read-only global, or from shared memory that the loop does not write. A term with a zero
// factor is then left out even if the other factor is infinite.
void ShortenLoops(LoopProgram* program, int kernel_buffers);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_APPLY_SHORTEN_H_
