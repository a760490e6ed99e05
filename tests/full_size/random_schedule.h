// Schedules that no heuristic would choose.
#ifndef KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_
#define KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_

#include <cstdint>
#include <random>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::full_size {

struct RandomSchedules {
  schedule::Schedule schedule;
  int64_t refused = 0;    // drafts that Apply did not accept, or the proof
  int64_t disproved = 0;  // of these, by the proof
};

// A schedule that Apply accepts and the proof, as those that kernels are compiled by, with
// directives of every kind: axes fused, split up to twice and reordered at random, lanes (at most
// `lanes`) along any axis, any tasks, operands staged in any layout in any loop. Without directives
// if none was accepted after many drafts.
RandomSchedules RandomSchedule(const kernel::Kernel& kernel, int lanes, std::mt19937_64& random);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_
