#include "drivers/interface/signal_group.h"

#include <utility>

namespace kiln::drivers {

void SignalGroup::Raise(int signal) {
  absl::MutexLock lock(&mutex_);
  raised_.insert(signal);
}

absl::Status SignalGroup::Wait(int signal) {
  auto ended = [this, signal]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return raised_.contains(signal) || !abort_reason_.ok();
  };
  absl::MutexLock lock(&mutex_, absl::Condition(&ended));
  return raised_.contains(signal) ? absl::OkStatus() : abort_reason_;
}

void SignalGroup::Abort(absl::Status reason) {
  absl::MutexLock lock(&mutex_);
  if (abort_reason_.ok()) abort_reason_ = std::move(reason);
}

}  // namespace kiln::drivers
