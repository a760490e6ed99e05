// Random schedules for blocks of threads.
#ifndef KILN_TESTS_NUMERICS_RANDOM_THREADS_H_
#define KILN_TESTS_NUMERICS_RANDOM_THREADS_H_

#include <optional>
#include <random>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::numerics {

// Returns a schedule with axes split and bound at random to tasks, threads, unrolled and plain
// loops, sums over threads, and staged factors of products. It is legal for the kernel, and has at
// most 256 threads and 48 KiB of shared memory. Returns nothing if several drafts failed, as for a
// kernel with a single point.
std::optional<schedule::Schedule> RandomThreads(const kernel::Kernel& kernel,
                                                std::mt19937_64& random);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_THREADS_H_
