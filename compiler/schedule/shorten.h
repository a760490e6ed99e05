// Loops that end where a run's data says that nothing is left to do.
//
// A sum over positions of which only the first `n` count, n being loaded, is masked: a term is zero
// where not (position < n). Its loop ends at n instead of going on with zeros.
#ifndef KILN_COMPILER_SCHEDULE_SHORTEN_H_
#define KILN_COMPILER_SCHEDULE_SHORTEN_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Gives a serial loop an extent if from some iteration on a condition is false without which no
// store of its body changes anything; the condition compares a sum of ranges with a number loaded
// from a global that is only read, or from shared memory that the loop does not write. A term that
// has a zero for a factor then is left out, also where the other factor is infinite.
void ShortenLoops(LoopProgram* program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_SHORTEN_H_
