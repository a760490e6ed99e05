// The threads that compile, and the end of compiling.
#ifndef KILN_SERVER_RUNTIME_COMPILE_THREADS_H_
#define KILN_SERVER_RUNTIME_COMPILE_THREADS_H_

#include <atomic>
#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "server/memory/host_memory.h"
#include "server/runtime/fair_pool.h"

namespace kiln::runtime {

// Thread-safe. The destructor runs what is queued, then joins.
class CompileThreads {
 public:
  CompileThreads(int threads, int threads_of_one) : pool_(threads, threads_of_one) {}

  // The accounts take turns; work without one counts as one account's.
  void Schedule(const memory::Account* account, std::function<void()> task) {
    pool_.Schedule(account, std::move(task));
  }

  // From here on `status` is UNAVAILABLE. What is queued still runs, so that whoever waits for it
  // gets an answer: tasks ask `status` first.
  void Stop() { stopped_ = true; }
  absl::Status status() const;

 private:
  std::atomic<bool> stopped_{false};
  FairPool pool_;  // last: its tasks use everything above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_COMPILE_THREADS_H_
