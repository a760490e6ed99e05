// Selects the points that the plain schedule computes if it cannot compute all.
#ifndef KILN_TESTS_FULL_SIZE_SAMPLE_H_
#define KILN_TESTS_FULL_SIZE_SAMPLE_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::full_size {

// Returns the plain schedule with each point of the parallel loops as a separate task.
schedule::Schedule PointByPoint(const kernel::Kernel& kernel);

// Returns runs of tasks [begin, end) of PointByPoint: the corners of each stage's loops, places
// near their edges, and others, with about `points` points in total. Deterministic.
std::vector<std::pair<int64_t, int64_t>> SampleTasks(const kernel::Kernel& kernel, int64_t points,
                                                     uint64_t seed);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_SAMPLE_H_
