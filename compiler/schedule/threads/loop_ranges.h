// Numbers for the ranges of loops that are added to a finished program.
#ifndef KILN_COMPILER_SCHEDULE_THREADS_LOOP_RANGES_H_
#define KILN_COMPILER_SCHEDULE_THREADS_LOOP_RANGES_H_

#include <cstdint>

#include "compiler/schedule/loop_program.h"

namespace kiln::schedule {

// Returns the first number that no range of the program's loops and axes has.
int64_t NextRange(const LoopProgram& program);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_THREADS_LOOP_RANGES_H_
