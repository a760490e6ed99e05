// Where all threads of a block must meet. Only synchronize.cc may include this.
#ifndef KILN_COMPILER_SCHEDULE_PLACE_BARRIERS_H_
#define KILN_COMPILER_SCHEDULE_PLACE_BARRIERS_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Puts a barrier wherever a thread could read or overwrite what another one wrote, or overwrite
// what another one has yet to read, since the last barrier. Whole buffers are looked at, not
// elements.
void PlaceBarriers(LoopProgram* program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PLACE_BARRIERS_H_
