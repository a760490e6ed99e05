// Computes how many steps a kernel's threads execute serially.
#ifndef KILN_TESTS_NUMERICS_KERNELS_SERIAL_DEPTH_H_
#define KILN_TESTS_NUMERICS_KERNELS_SERIAL_DEPTH_H_

#include <cstdint>

#include "compiler/schedule/loop_program.h"

namespace kiln::numerics {

// Returns the maximum number of stores that a thread executes one after another. Stores in loops
// count for each iteration, independent of the data; of a branch only one side counts. Threads that
// reduce together count once for each level of their tree.
int64_t SerialDepth(const schedule::LoopProgram& program);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_KERNELS_SERIAL_DEPTH_H_
