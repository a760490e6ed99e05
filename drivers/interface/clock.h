// The clock that drivers measure with; handed in, so that tests make their own.
#ifndef KILN_DRIVERS_INTERFACE_CLOCK_H_
#define KILN_DRIVERS_INTERFACE_CLOCK_H_

#include <chrono>
#include <functional>

namespace kiln::drivers {

using SteadyTime = std::chrono::steady_clock::time_point;
// Never goes back. Thread-safe.
using SteadyClock = std::function<SteadyTime()>;

// Between two times.
inline double Seconds(SteadyTime from, SteadyTime to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_CLOCK_H_
