// Stops or pauses one tuning.
#ifndef KILN_SERVER_TUNER_TUNING_CONTROL_H_
#define KILN_SERVER_TUNER_TUNING_CONTROL_H_

#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Thread-safe. Reaches also a candidate that hangs.
class TuningControl {
 public:
  TuningControl() = default;
  // The runner of candidates yields its memory to users' allocations, and calls `on_yield` then
  // (TrialRunner::SetOnYield). Then call Pause, and Resume when it may go on.
  explicit TuningControl(std::function<void()> on_yield) : on_yield_(std::move(on_yield)) {}

  // Ends the tuning soon. The first reason counts.
  void Cancel(const absl::Status& why = absl::CancelledError("the tuning was cancelled"))
      ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_cancelled() const ABSL_LOCKS_EXCLUDED(mutex_) { return !status().ok(); }
  // OK, or why it was cancelled.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing is compiled or run, and what runs candidates frees what it can. A
  // compilation that has begun ends. `now` is of the steady clock.
  void Pause(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume(absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  bool is_paused() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until it is not paused, or is cancelled.
  void AwaitResume() const ABSL_LOCKS_EXCLUDED(mutex_);
  // The time of all pauses.
  absl::Duration paused(absl::Time now) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Sets the runner that runs candidates now; null: none does. It outlives the next call.
  void SetRunner(TrialRunner* runner) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  bool GoesOn() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !is_paused_ || !status_.ok(); }

  const std::function<void()> on_yield_;  // null: it keeps its memory
  mutable absl::Mutex mutex_;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time paused_since_ ABSL_GUARDED_BY(mutex_);
  absl::Duration paused_ ABSL_GUARDED_BY(mutex_);  // of pauses that are over
  TrialRunner* runner_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_TUNING_CONTROL_H_
