// The clock that drivers measure with. It is injected, so tests can supply their own.
#ifndef KILN_DRIVERS_INTERFACE_CLOCK_H_
#define KILN_DRIVERS_INTERFACE_CLOCK_H_

#include <chrono>
#include <functional>

namespace kiln::drivers {

using SteadyTime = std::chrono::steady_clock::time_point;
// Monotonic. Thread-safe.
using SteadyClock = std::function<SteadyTime()>;

// Seconds from one time to another.
inline double Seconds(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_CLOCK_H_
