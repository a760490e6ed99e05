// Signals, by which lists on several devices wait for each other.
#ifndef KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_
#define KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace kiln::drivers {

// What the signals of some lists stand at. Made with the lists and used by every group of
// submissions of theirs, so that a run allocates and clears nothing: group number k raises a signal
// to k, and waits until one is at k or beyond. Thread-safe.
class Signals {
 public:
  explicit Signals(int count)
      : count_(count), raised_(std::make_unique<std::atomic<int64_t>[]>(count)) {}
  // Lists that use them name smaller numbers.
  int count() const { return count_; }

 private:
  friend class SignalGroup;

  // Blocks until `holds()`, which only what is followed by Changed may make true.
  template <typename Condition>
  void WaitUntil(const Condition& holds) ABSL_LOCKS_EXCLUDED(mutex_);
  void Changed() ABSL_LOCKS_EXCLUDED(mutex_);

  const int count_;
  const std::unique_ptr<std::atomic<int64_t>[]> raised_;  // the latest group that has raised each
  std::atomic<int64_t> last_group_{0};
  std::atomic<int64_t> changes_{0};
  std::atomic<int> sleepers_{0};
  absl::Mutex mutex_;
  absl::CondVar changed_;  // a signal was raised, or a group aborted
};

// One group of submissions: each of the lists is submitted once with it, a device's one behind
// another, with lists of other signals in between. Groups of the same signals that share a device
// are submitted to all devices in the order in which they were made, each before the next begins. A
// signal once raised stays raised. Thread-safe.
class SignalGroup {
 public:
  explicit SignalGroup(std::shared_ptr<Signals> signals)
      : signals_(std::move(signals)), number_(++signals_->last_group_) {}

  const Signals& signals() const { return *signals_; }

  // `signal`: from 0 to below the count.
  void Raise(int signal);

  // Blocks until the signal is raised: OK, or until the group is aborted: the reason. A signal that
  // was raised before the abort is OK. Looks for a few microseconds, then sleeps.
  absl::Status Wait(int signal);
  // Whether Wait would return at once. Once true it stays true.
  bool IsDecided(int signal) const { return IsRaised(signal) || aborted_.load(); }

  // For a thread with several waits to look after. Read before it looks at IsDecided: what it then
  // does not see yet is another number.
  int64_t changes() const { return signals_->changes_.load(); }
  // Blocks as Wait does until changes() is not `seen`.
  void WaitForChange(int64_t seen);
  // Makes it another number.
  void Change() { signals_->Changed(); }
  // How many threads sleep in Wait or WaitForChange of a group of these signals.
  int sleepers() const { return signals_->sleepers_.load(); }

  // Ends all waits, now and later, with `reason` (not OK). Drivers do this when a list of the group
  // fails, and callers when they could not submit the whole group. The first reason stays.
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
