// Random schedules, which no heuristic would choose.
#ifndef KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_
#define KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_

#include <cstdint>
#include <random>

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"

namespace kiln::full_size {

struct RandomSchedules {
  schedule::Schedule schedule;
  int64_t refused = 0;    // drafts that Apply or the proof did not accept
  int64_t disproved = 0;  // those of them that the proof refused
};

// Returns a schedule that Apply and the proof accept, as for compiled kernels, with directives of
// every kind: axes fused, split up to twice and reordered at random, lanes (at most `lanes`) along
// any axis, any tasks, operands staged in any layout in any loop. Has no directives if none was
// accepted after many drafts.
RandomSchedules RandomSchedule(const kernel::Kernel& kernel, int lanes, std::mt19937_64& random);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_RANDOM_SCHEDULE_H_
