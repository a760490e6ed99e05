// The threads that compile, and how compiling stops.
#ifndef KILN_SERVER_RUNTIME_CACHE_COMPILE_THREADS_H_
#define KILN_SERVER_RUNTIME_CACHE_COMPILE_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "server/fairness/host_work.h"
#include "server/memory/host_memory.h"
#include "server/runtime/cache/fair_pool.h"

namespace kiln::runtime {

// Users take turns, no matter how many tasks one of them has queued: another user's next task
// starts when any thread finishes its task. It starts at once while fewer than `threads` /
// `threads_of_one` users compile. Thread-safe. The destructor runs the queued tasks, then joins.
class CompileThreads {
 public:
  struct Options {
    int threads = 8;
    int threads_of_one = 2;        // maximum that run at once for one user
    size_t waiting_of_one = 1024;  // maximum queued by Ask for one user
    // Tasks that run count there. May be null.
    fairness::HostWork* host_work = nullptr;
  };

  explicit CompileThreads(const Options& options)
      : options_(options), pool_(options.threads, options.threads_of_one) {}

  // Queues a task that a client asks for. RESOURCE_EXHAUSTED if too many of the user's tasks are
  // queued; `task` is then not called. All work without an account counts as one user's.
  absl::Status Ask(const memory::Account* account, std::function<void()> task);
  // Queues a task without a limit: one that follows from an accepted task, or that a client asked
  // an earlier daemon for. The number of those is bounded by what that daemon accepted.
  void Schedule(const memory::Account* account, std::function<void()> task);

  // Makes `status` return UNAVAILABLE. Queued tasks still run and check `status` first, so every
  // waiter gets an answer.
  void Stop() { stopped_ = true; }
  absl::Status status() const;

 private:
  std::function<void()> Counted(std::function<void()> task) const;

  const Options options_;
  std::atomic<bool> stopped_{false};
  FairPool pool_;  // last: its tasks use all members above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_COMPILE_THREADS_H_
