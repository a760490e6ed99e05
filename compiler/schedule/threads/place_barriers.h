// Places the barriers of a block's threads. Only synchronize.cc may include this.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_PLACE_BARRIERS_H_
#define KILN_COMPILER_SCHEDULE_THREADS_PLACE_BARRIERS_H_

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Places a barrier wherever a thread could, since the last barrier, read or overwrite another
// thread's write, or overwrite an element that another thread has yet to read. Works on whole
// buffers, not on elements.
void PlaceBarriers(LoopProgram* program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_PLACE_BARRIERS_H_
