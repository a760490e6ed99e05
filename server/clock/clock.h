// The daemon's two clocks, which are handed in, so that tests make their own.
#ifndef KILN_SERVER_CLOCK_CLOCK_H_
#define KILN_SERVER_CLOCK_CLOCK_H_

#include <ctime>
#include <functional>

#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace kiln {

// The time since the machine was started, counted from the epoch, with the time in which it slept
// (CLOCK_BOOTTIME of clock_gettime(2)). Only differences mean anything.
inline absl::Time SteadyNow() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return absl::TimeFromTimespec(time);
}

// Both are thread-safe. A time of one is never compared with a time of the other.
struct Clock {
  // For people, files and logs. It steps when somebody sets it.
  std::function<absl::Time()> wall;
  // For leases, ages and deadlines. It never steps, and means nothing to another process.
  std::function<absl::Time()> steady;
};

inline Clock SystemClock() { return {.wall = absl::Now, .steady = SteadyNow}; }

// The wall clock's time at which a moment of the steady clock comes, as it looks now.
inline absl::Time OnWall(const Clock& clock, absl::Time steady) {
  return clock.wall() + (steady - clock.steady());
}

}  // namespace kiln

#endif  // KILN_SERVER_CLOCK_CLOCK_H_
