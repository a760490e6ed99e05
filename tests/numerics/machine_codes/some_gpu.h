// A GPU for which kernels are scheduled, independent of this machine's.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_SOME_GPU_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_SOME_GPU_H_

#include "drivers/interface/target.h"

namespace kiln::numerics {

// Returns a small GPU, so that small kernels get blocks of threads, with the shared memory that
// every GPU has.
const drivers::Target& SomeGpu();

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_SOME_GPU_H_
