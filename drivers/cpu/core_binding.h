// When a thread stays on one core, and when it goes where the system puts it.
#ifndef KILN_DRIVERS_CPU_CORE_BINDING_H_
#define KILN_DRIVERS_CPU_CORE_BINDING_H_

#include <chrono>

#include "drivers/interface/clock.h"

namespace kiln::drivers::cpu {

// A bound thread is fastest while its core is its own. Where other programs use that core too, it
// waits its turn though another core may idle. So a thread is bound until it finds that others take
// its core, goes free for a while, and tries again; each attempt in vain makes the next while
// longer.
class BindingPolicy {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr std::chrono::milliseconds kWindow{20};  // of wanting a core
  static constexpr double kLeastShare = 0.75;              // of a window that a bound thread gets
  static constexpr std::chrono::seconds kShortestFreedom{1};
  static constexpr std::chrono::seconds kLongestFreedom{16};

  // The thread wanted a core for `wanted` and had one for `had` of that, until `now`. Whether it
  // is to be bound from now on.
  bool Update(Clock::duration wanted, Clock::duration had, Clock::time_point now);

  bool bound() const { return bound_; }

 private:
  bool bound_ = true;
  Clock::duration wanted_{};
  Clock::duration had_{};
  Clock::duration freedom_ = kShortestFreedom;
  Clock::time_point next_try_;
};

// Binds the thread that made it, the `thread`-th of `threads`, if the process may use just as many
// cores. For that thread only.
class CoreBinding {
 public:
  CoreBinding(int thread, int threads, SteadyClock now);

  // The thread computes, or waits without giving up its core. To be called at least between jobs.
  void Awake();
  // The thread is about to sleep, or to do what is not the pool's.
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
  // Of the measurement; its end if there is none now.
  Clock::time_point since_;
  std::chrono::nanoseconds thread_time_{};
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_CORE_BINDING_H_
