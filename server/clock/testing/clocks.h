// Clocks for tests.
#ifndef KILN_SERVER_CLOCK_TESTING_CLOCKS_H_
#define KILN_SERVER_CLOCK_TESTING_CLOCKS_H_

#include <functional>
#include <utility>

#include "absl/time/time.h"
#include "server/clock/clock.h"

namespace kiln::testing {

// Both clocks return `now`.
inline Clock ClockOf(std::function<absl::Time()> now) { return {.wall = now, .steady = now}; }

inline Clock StoppedClock() {
  return ClockOf([] { return absl::UnixEpoch(); });
}

}  // namespace kiln::testing

#endif  // KILN_SERVER_CLOCK_TESTING_CLOCKS_H_
