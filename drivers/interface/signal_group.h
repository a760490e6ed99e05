// Signals, with which lists on several devices wait for each other.
#ifndef KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_
#define KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace kiln::drivers {

// The counters of the signals of some lists. Made with the lists and used by every group of their
// submissions, so that a run allocates and clears nothing: group number k raises a signal to k, and
// waits until it is at least k. Thread-safe.
class Signals {
 public:
  // Requires: `count` >= 0.
  explicit Signals(int count)
      : count_(count), raised_(std::make_unique<std::atomic<int64_t>[]>(count)) {}
  // Lists that use these signals name numbers below this.
  int count() const { return count_; }

 private:
  friend class SignalGroup;

  // Blocks until `holds()`. Every change that can make it true must be followed by Changed.
  template <typename Condition>
  void WaitUntil(const Condition& holds) ABSL_LOCKS_EXCLUDED(mutex_);
  void Changed() ABSL_LOCKS_EXCLUDED(mutex_);

  const int count_;
  const std::unique_ptr<std::atomic<int64_t>[]> raised_;  // the latest group to raise each
  std::atomic<int64_t> last_group_{0};
  std::atomic<int64_t> changes_{0};
  std::atomic<int> sleepers_{0};
  absl::Mutex mutex_;
  absl::CondVar changed_;  // a signal was raised, or a group aborted
};

// One group of submissions. Each list is submitted once with it; lists on the same device are
// submitted one after another, possibly with lists of other signals in between. Groups of the same
// signals that share a device are submitted to all devices in the order of their creation, each
// completely before the next begins. A raised signal stays raised. Thread-safe.
class SignalGroup {
 public:
  explicit SignalGroup(std::shared_ptr<Signals> signals)
      : signals_(std::move(signals)), number_(++signals_->last_group_) {}

  const Signals& signals() const { return *signals_; }

  // Requires: 0 <= `signal` < the count.
  void Raise(int signal);

  // Requires: as Raise.
  // Blocks until the signal is raised (OK) or the group is aborted (the reason). A signal that was
  // raised before the abort is OK. Spins for a few microseconds, then sleeps.
  absl::Status Wait(int signal);
  // Whether Wait would return at once. Once true, it stays true.
  bool IsDecided(int signal) const { return IsRaised(signal) || aborted_.load(); }

  // A change counter for a thread that watches several signals. Read it before IsDecided: any
  // change that IsDecided did not see changes the counter.
  int64_t changes() const { return signals_->changes_.load(); }
  // Blocks as Wait does, until changes() differs from `seen`.
  void WaitForChange(int64_t seen);
  // Increments the counter and wakes waiting threads.
  void Change() { signals_->Changed(); }
  // The number of threads asleep in Wait or WaitForChange of any group of these signals.
  int sleepers() const { return signals_->sleepers_.load(); }

  // Ends all waits, current and future, with `reason` (not OK). Called by drivers when a list of
  // the group fails, and by callers that could not submit the whole group. The first reason is
  // kept.
  void Abort(absl::Status reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool IsRaised(int signal) const { return signals_->raised_[signal].load() >= number_; }
  absl::Status AbortReason() const ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<Signals> signals_;
  const int64_t number_;
  std::atomic<bool> aborted_{false};
  mutable absl::Mutex mutex_;
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_
