// Counts open streams that still have answers to send, so that a shutdown can wait for them.
#ifndef KILN_SERVER_RPC_SERVICES_OPEN_CALLS_H_
#define KILN_SERVER_RPC_SERVICES_OPEN_CALLS_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "proto/check/check.h"

namespace kiln::rpc {

// Thread-safe. Must outlive every Call made from it.
class OpenCalls {
 public:
  // Counts during its lifetime; a member of a stream's reactor.
  class Call {
   public:
    // Requires: `calls` is not null.
    explicit Call(OpenCalls* calls) : calls_(*calls) { calls_.Add(1); }
    ~Call() { calls_.Add(-1); }
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    OpenCalls& calls_;
  };

  // Waits until no call is open; returns false if `patience` passes first.
  bool WaitUntilNone(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return mutex_.AwaitWithTimeout(absl::Condition(
                                       +[](int* count) { return *count == 0; }, &count_),
                                   patience);
  }

 private:
  void Add(int change) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    count_ += change;
    KILN_CHECK_GE(count_, 0) << "a call ended twice";
  }

  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_SERVICES_OPEN_CALLS_H_
