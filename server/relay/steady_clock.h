// A clock that never steps.
#ifndef KILN_SERVER_RELAY_STEADY_CLOCK_H_
#define KILN_SERVER_RELAY_STEADY_CLOCK_H_

#include <ctime>

#include "absl/time/time.h"

namespace kiln::relay {

// The time since the machine was started, counted from the epoch, with the time in which it slept
// (CLOCK_BOOTTIME of clock_gettime(2)). Only differences mean anything.
inline absl::Time SteadyNow() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return absl::TimeFromTimespec(time);
}

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_STEADY_CLOCK_H_
