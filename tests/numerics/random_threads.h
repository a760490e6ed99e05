// Schedules for blocks of threads, drawn at random.
#ifndef KILN_TESTS_NUMERICS_RANDOM_THREADS_H_
#define KILN_TESTS_NUMERICS_RANDOM_THREADS_H_

#include <optional>
#include <random>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::numerics {

// Axes split and bound at random to tasks, threads, unrolled and plain loops; sums over threads;
// factors of products staged. Fits the kernel, has at most 256 threads and 48 KiB of shared memory.
// Nothing if some drafts did not come to that, as where a kernel has one point alone.
std::optional<schedule::Schedule> RandomThreads(const kernel::Kernel& kernel,
                                                std::mt19937_64& random);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_THREADS_H_
