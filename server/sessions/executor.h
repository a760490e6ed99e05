// Executes a session's operations one after another, in the order in which they came.
#ifndef KILN_SERVER_SESSIONS_EXECUTOR_H_
#define KILN_SERVER_SESSIONS_EXECUTOR_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/sessions/operation.h"

namespace kiln::sessions {

// Thread-safe. It has no thread of its own: whoever brings an operation executes it and what has
// been added meanwhile, and whoever resolves what an operation waits for goes on from there.
// Nothing is called with its lock held. Add and Close call nothing, and so may be called with the
// session's lock held; Run and WhenExecuted call back, and may not.
class Executor {
 public:
  // Has `resume` called once something is there. False, and it is not called, if it is already.
  using AddWaiter = std::function<bool(std::function<void()> resume)>;
  struct Steps {
    // What must be there before the operation can be executed; null if nothing. It is asked again
    // once that is there.
    std::function<AddWaiter(uint64_t sequence, const Operation&)> must_wait_for;
    std::function<void(uint64_t sequence, Operation&)> execute;
  };
  struct Queued {
    uint64_t sequence = 0;
    Operation operation;
  };
  // What Close leaves to its caller, who destroys the operations and calls the waiters, without
  // locks.
  struct Dropped {
    std::deque<Queued> operations;
    std::vector<std::function<void()>> waiters;
  };

  explicit Executor(Steps steps) : steps_(std::move(steps)) {}

  // Behind all others; `sequence` never falls from call to call. It is not executed before Run.
  void Add(uint64_t sequence, Operation operation) ABSL_LOCKS_EXCLUDED(mutex_);
  // Executes what can be executed, unless another thread is at it. What waits keeps `self`.
  static void Run(const std::shared_ptr<Executor>& self) ABSL_LOCKS_EXCLUDED(self->mutex_);
  // Calls `then` when everything up to `sequence` has been executed: at once, or else before
  // anything later is executed.
  void WhenExecuted(uint64_t sequence, std::function<void()> then) ABSL_LOCKS_EXCLUDED(mutex_);
  // Nothing is taken for execution any more, until Unpause has been called as often; returns, once
  // nothing is being executed, the number of the last operation that was. What has been added stays
  // until Close.
  uint64_t Pause() ABSL_LOCKS_EXCLUDED(mutex_);
  // The caller has to call Run.
  void Unpause() ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of the last operation that was executed.
  uint64_t executed() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return executed_;
  }
  // What has not been taken for execution is dropped, and what waits; nothing is taken any more.
  [[nodiscard]] Dropped Close() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiter {
    uint64_t sequence = 0;
    std::function<void()> then;
  };

  // The next four are for the thread that has set busy_, to which `current_` belongs.
  // Takes the next operation into `current_`. False: there is none, and busy_ ends.
  bool TakeNext() ABSL_LOCKS_EXCLUDED(mutex_);
  // `current_` must wait: it is the next to be taken.
  void PutBack() ABSL_LOCKS_EXCLUDED(mutex_);
  // `current_` has been executed.
  void MarkExecuted() ABSL_LOCKS_EXCLUDED(mutex_);
  // Executes `current_` and what follows it, until something must be waited for. Nothing overtakes
  // that: busy_ goes on, and whoever resolves it continues.
  static void Continue(const std::shared_ptr<Executor>& self);

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
