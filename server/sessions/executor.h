// Executes a session's operations one at a time, in the order of arrival.
#ifndef KILN_SERVER_SESSIONS_EXECUTOR_H_
#define KILN_SERVER_SESSIONS_EXECUTOR_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/sessions/operations/operation.h"

namespace kiln::sessions {

// Thread-safe. Has no thread of its own: the thread that calls Run executes the operation that it
// added and all that were added meanwhile; the thread that resolves what an operation waits for
// continues from there. Calls nothing with its lock held. Add and Close call no callback, so they
// may be called with the session's lock held; Run and WhenExecuted call back and may not.
class Executor {
 public:
  struct Steps {
    // Returns how to wait for what the operation needs; null if it can be executed now. It is asked
    // again after each wait.
    std::function<AddWaiter(uint64_t sequence, const Operation&)> must_wait_for;
    std::function<void(uint64_t sequence, Operation&)> execute;
  };
  struct Queued {
    uint64_t sequence = 0;
    Operation operation;
  };
  // Returned by Close. The caller destroys the operations and calls the waiters, without holding
  // locks.
  struct Dropped {
    std::deque<Queued> operations;
    std::vector<std::function<void()>> waiters;
  };

  explicit Executor(Steps steps) : steps_(std::move(steps)) {}

  // Appends an operation, which is executed only by a call to Run. Requires: `sequence` does not
  // decrease from call to call.
  void Add(uint64_t sequence, Operation operation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Executes the operations that can be executed, unless another thread is doing so. A waiting
  // operation keeps `self` alive.
  static void Run(const std::shared_ptr<Executor>& self) ABSL_LOCKS_EXCLUDED(self->mutex_);
  // Calls `then` when all operations up to `sequence` have been executed: immediately, or before
  // any later operation is executed. Requires: `then` is callable.
  void WhenExecuted(uint64_t sequence, std::function<void()> then) ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops execution until Unpause has been called as often as Pause. Waits until nothing is being
  // executed; returns the number of the last executed operation. Added operations remain queued
  // until Close.
  uint64_t Pause() ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller must call Run afterwards. Requires: a call of Pause that was not undone yet.
  void Unpause() ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the last executed operation.
  uint64_t executed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return executed_;
  }
  // Stops execution for good. Returns the operations not taken for execution, including one that
  // waits, and the waiters.
  [[nodiscard]] Dropped Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    uint64_t sequence = 0;
    std::function<void()> then;
  };

  // Only the thread that has set busy_ calls the next four methods; it owns `current_`.
  // Takes the next operation into `current_`. Returns false and clears busy_ if there is none.
  bool TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // Puts `current_`, which must wait, back at the front of the queue.
  void PutBack() ABSL_LOCKS_EXCLUDED(mutex_);
  // Records that `current_` has been executed.
  void MarkExecuted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Executes `current_` and the operations after it, until one must wait. No operation overtakes
  // it: busy_ remains set, and the thread that resolves the wait continues.
  static void Continue(const std::shared_ptr<Executor>& self);
  // The queue is in order after what was executed, waiters wait for later operations, and a closed
  // executor has neither.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  size_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return queue_.size() + waiters_.size();
  }

  const Steps steps_;
  Queued current_;
  mutable absl::Mutex mutex_;
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool executing_ ABSL_GUARDED_BY(mutex_) = false;  // false while `current_` waits
  int pauses_ ABSL_GUARDED_BY(mutex_) = 0;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t executed_ ABSL_GUARDED_BY(mutex_) = 0;
  std::deque<Queued> queue_ ABSL_GUARDED_BY(mutex_);
  std::vector<Waiter> waiters_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_EXECUTOR_H_
