// A result that is known, will be known, or could not be made.
#ifndef KILN_SERVER_RUNTIME_FUTURE_H_
#define KILN_SERVER_RUNTIME_FUTURE_H_

#include <functional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"

namespace kiln::runtime {

// Thread-safe.
template <typename T>
class Future {
 public:
  bool resolved() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return resolved_;
  }
  // Requires: resolved.
  const absl::StatusOr<T>& result() const { return result_; }

  // Registers `waiter`, which is called by the thread that resolves the future. Returns false, and
  // does not call it, if the future is resolved already.
  bool AddWaiter(std::function<void()> waiter) ABSL_LOCKS_EXCLUDED(mutex_) {
    KILN_CHECK(waiter != nullptr);
    absl::MutexLock lock(&mutex_);
    if (resolved_) return false;
    waiters_.push_back(std::move(waiter));
    return true;
  }

  // Later calls do nothing.
  void Resolve(absl::StatusOr<T> result) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::vector<std::function<void()>> waiters;
    {
      absl::MutexLock lock(&mutex_);
      if (resolved_) {
        KILN_CHECK(waiters_.empty());
        return;
      }
      result_ = std::move(result);
      resolved_ = true;
      waiters.swap(waiters_);
    }
    for (const auto& waiter : waiters) waiter();
  }

 private:
  mutable absl::Mutex mutex_;
  bool resolved_ ABSL_GUARDED_BY(mutex_) = false;
  absl::StatusOr<T> result_;  // written once, before resolved_
  std::vector<std::function<void()>> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_FUTURE_H_
