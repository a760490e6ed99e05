// How long the threads of a kernel work one step after the other.
#ifndef KILN_TESTS_NUMERICS_SERIAL_DEPTH_H_
#define KILN_TESTS_NUMERICS_SERIAL_DEPTH_H_

#include <cstdint>

#include "compiler/schedule/loop_program.h"

namespace kiln::numerics {

// Stores that a thread makes one after the other, at most: those in loops as often as these go
// round, whatever the data says; both sides of no branch. Threads that reduce together count once
// for each round of their tree.
int64_t SerialDepth(const schedule::LoopProgram& program);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_SERIAL_DEPTH_H_
