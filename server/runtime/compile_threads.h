// The threads that compile, and the end of compiling.
#ifndef KILN_SERVER_RUNTIME_COMPILE_THREADS_H_
#define KILN_SERVER_RUNTIME_COMPILE_THREADS_H_

#include <atomic>
#include <cstddef>
#include <functional>

#include "absl/status/status.h"
#include "server/memory/host_memory.h"
#include "server/runtime/fair_pool.h"

namespace kiln::runtime {

// Users take turns: however much one has waiting, another's next task begins when a thread has
// ended what it is at, and finds a thread at once while fewer users than `threads` /
// `threads_of_one` compile. Thread-safe. The destructor runs what is queued, then joins.
class CompileThreads {
 public:
  struct Options {
    int threads = 8;
    int threads_of_one = 2;        // at most, of one user's tasks
    size_t waiting_of_one = 1024;  // tasks that clients have asked for
  };

  explicit CompileThreads(const Options& options)
      : options_(options), pool_(options.threads, options.threads_of_one) {}

  // What a client asks for. RESOURCE_EXHAUSTED: too much of the user's waits already; `task` is not
  // called. Work without an account counts as one user's.
  absl::Status Ask(const memory::Account* account, std::function<void()> task);
  // What follows from it, and what a client had asked an earlier daemon for: bounded by what that
  // one took.
  void Schedule(const memory::Account* account, std::function<void()> task);

  // From here on `status` is UNAVAILABLE. What is queued still runs, so that whoever waits for it
  // gets an answer: tasks ask `status` first.
  void Stop() { stopped_ = true; }
  absl::Status status() const;

 private:
  const Options options_;
  std::atomic<bool> stopped_{false};
  FairPool pool_;  // last: its tasks use everything above
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_COMPILE_THREADS_H_
