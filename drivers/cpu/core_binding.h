// Decides when a thread is bound to one core and when the system may move it.
#ifndef KILN_DRIVERS_CPU_CORE_BINDING_H_
#define KILN_DRIVERS_CPU_CORE_BINDING_H_

#include <chrono>

#include "drivers/interface/clock.h"

namespace kiln::drivers::cpu {

// A bound thread is fastest while no other thread uses its core. If other programs use that core
// too, it waits although another core may be idle. So a thread is bound until it measures that
// others take its core, is then unbound for a while, and tries again. Each failed attempt makes the
// next unbound period longer.
class BindingPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kWindow{20};  // time of wanting a core
  static constexpr double kShareMin = 0.75;                // of a window, for a bound thread
  static constexpr std::chrono::seconds kShortestFreedom{1};
  static constexpr std::chrono::seconds kLongestFreedom{16};

  // Until `now` the thread wanted a core for `wanted` and had one for `had` of that time. Returns
  // whether it is to be bound from now on.
  bool Update(Clock::duration wanted, Clock::duration had, Clock::time_point now);

  bool bound() const { return bound_; }

 private:
  // Checks that the unbound period is within its bounds, and that less than a window is measured.
  void Validate() const;

  bool bound_ = true;
  Clock::duration wanted_{};
  Clock::duration had_{};
  Clock::duration freedom_ = kShortestFreedom;
  Clock::time_point next_try_;
};

// Binds the thread that constructs it, the `thread`-th of `threads`, if the process may use exactly
// `threads` cores. Requires: 0 <= `thread` < `threads`. Only that thread may use the object.
class CoreBinding {
 public:
  CoreBinding(int thread, int threads, SteadyClock now);

  // The thread computes, or waits without giving up its core. Call this at least between jobs.
  void Awake();
  // The thread is about to sleep, or to do work outside the pool.
  void Asleep();

 private:
  using Clock = BindingPolicy::Clock;

  void StartMeasuring(Clock::time_point now);
  void EndMeasuring(Clock::time_point now);
  void Apply();

  const int thread_;
  const int threads_;
  const SteadyClock now_;
  BindingPolicy policy_;
  bool holds_core_ = false;
  bool measuring_ = false;
  // The start of the current measurement; between measurements, the end of the last one.
  Clock::time_point since_;
  std::chrono::nanoseconds thread_time_{};
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_CORE_BINDING_H_
