// The daemon's two clocks. They are injected, so tests can supply their own.
#ifndef KILN_SERVER_CLOCK_CLOCK_H_
#define KILN_SERVER_CLOCK_CLOCK_H_

#include <ctime>
#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln {

// The time since the machine was started, including time asleep (CLOCK_BOOTTIME of
// clock_gettime(2)), as a time since the epoch. Only differences are meaningful.
inline absl::Time SteadyNow() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return absl::TimeFromTimespec(time);
}

// Both are thread-safe. Never compare a time of one with a time of the other.
struct Clock {
  // For people, files and logs. It jumps when it is set.
  std::function<absl::Time()> wall;
  // For leases, ages and deadlines. It never jumps, and is meaningless to other processes.
  std::function<absl::Time()> steady;
};

inline Clock SystemClock() { return {.wall = absl::Now, .steady = SteadyNow}; }

// Converts a time of the steady clock to the wall clock, by their current difference.
inline absl::Time OnWall(const Clock& clock, absl::Time steady) {
  return clock.wall() + (steady - clock.steady());
}

}  // namespace kiln

#endif  // KILN_SERVER_CLOCK_CLOCK_H_
