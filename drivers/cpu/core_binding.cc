#include "drivers/cpu/core_binding.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "drivers/cpu/thread_control.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

// Reading a thread's time is a system call, so one measurement covers many short jobs.
constexpr std::chrono::milliseconds kMeasuringTime(4);
constexpr std::chrono::milliseconds kPauseBetweenMeasurements(1);

}  // namespace

void BindingPolicy::Validate() const {
  KILN_CHECK(freedom_ >= kShortestFreedom && freedom_ <= kLongestFreedom) << freedom_.count();
  KILN_CHECK(wanted_ < kWindow) << wanted_.count();
}

bool BindingPolicy::Update(Clock::duration wanted, Clock::duration had, Clock::time_point now) {
  if (!bound_) {
    bound_ = now >= next_try_;
    return bound_;
  }
  wanted_ += wanted;
  had_ += had;
  // A single job proves little: any thread may lose its core for a moment.
  if (wanted_ < kWindow) return true;
  if (had_ < kShareMin * wanted_) {
    bound_ = false;
    next_try_ = now + freedom_;
    freedom_ = std::min<Clock::duration>(2 * freedom_, kLongestFreedom);
  } else {
    freedom_ = std::max<Clock::duration>(freedom_ / 2, kShortestFreedom);
  }
  wanted_ = had_ = Clock::duration::zero();
  KILN_VALIDATE(*this, 1);
  return bound_;
}

CoreBinding::CoreBinding(int thread, int threads, SteadyClock now)
    : thread_(thread), threads_(threads), now_(std::move(now)) {
  KILN_CHECK(thread_ >= 0 && thread_ < threads_) << thread_ << " of " << threads_;
  if (threads_ > 1) Apply();
}

void CoreBinding::Apply() {
  // Read each time, since masks change.
  const std::vector<int> cores = AllowedCores();
  if (policy_.bound() && static_cast<int>(cores.size()) == threads_) {
    RunOnCores({cores[thread_]});
    holds_core_ = true;
  } else if (holds_core_) {
    // A thread that was never bound keeps the mask that the system gave it.
    RunOnCores(cores);
    holds_core_ = false;
  }
}

void CoreBinding::Awake() {
  if (threads_ == 1) return;
  const Clock::time_point now = now_();
  // The pause between measurements keeps the cost for short jobs low; long jobs are measured
  // without a pause.
  if (measuring_ && now - since_ >= kMeasuringTime) {
    EndMeasuring(now);
    StartMeasuring(now);
  } else if (!measuring_ && now - since_ >= kPauseBetweenMeasurements) {
    StartMeasuring(now);
  }
}

void CoreBinding::Asleep() {
  if (measuring_) EndMeasuring(now_());
}

void CoreBinding::StartMeasuring(Clock::time_point now) {
  KILN_CHECK(!measuring_);
  measuring_ = true;
  since_ = now;
  thread_time_ = ThreadTime();
}

void CoreBinding::EndMeasuring(Clock::time_point now) {
  KILN_CHECK(measuring_);
  measuring_ = false;
  const bool was_bound = policy_.bound();
  const bool bind = policy_.Update(now - since_, ThreadTime() - thread_time_, now);
  since_ = now;
  if (bind != was_bound) Apply();
}

}  // namespace kiln::drivers::cpu
