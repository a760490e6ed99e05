#include "drivers/interface/signal_group.h"

#include <utility>

namespace kiln::drivers {

void SignalGroup::Raise(int signal) {
  absl::MutexLock lock(&mutex_);
  raised_.insert(signal);
  changed_.SignalAll();
}

absl::Status SignalGroup::Wait(int signal) {
  absl::MutexLock lock(&mutex_);
  while (!raised_.contains(signal) && abort_reason_.ok()) changed_.Wait(&mutex_);
  // A signal that was raised in time counts, even if the group was aborted before this thread woke.
  return raised_.contains(signal) ? absl::OkStatus() : abort_reason_;
}

void SignalGroup::Abort(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  // Later failures are most likely consequences of the first.
  if (abort_reason_.ok()) abort_reason_ = std::move(reason);
  changed_.SignalAll();
}

}  // namespace kiln::drivers
