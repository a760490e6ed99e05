// The signals that one group of submissions shares, by which lists on several devices wait for each
// other.
#ifndef KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_
#define KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace kiln::drivers {

// Made afresh for each group; a signal once raised stays raised. Thread-safe.
class SignalGroup {
 public:
  void Raise(int signal);

  // Blocks until the signal is raised: OK, or until the group is aborted: the reason. A signal that
  // was raised before the abort is OK.
  absl::Status Wait(int signal);

  // Ends all waits, now and later, with `reason` (not OK). Drivers do this when a list of the group
  // fails, and callers when they could not submit the whole group. The first reason stays.
  void Abort(absl::Status reason);

 private:
  absl::Mutex mutex_;
  absl::CondVar changed_;  // a signal was raised, or the group aborted
  absl::flat_hash_set<int> raised_ ABSL_GUARDED_BY(mutex_);
  absl::Status abort_reason_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_SIGNAL_GROUP_H_
