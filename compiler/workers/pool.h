// Kernels compiled in worker processes, with limits on time and memory: what ends or stops a worker
// is an error of that kernel, and nobody else's.
#ifndef KILN_COMPILER_WORKERS_POOL_H_
#define KILN_COMPILER_WORKERS_POOL_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "compiler/workers/channel.h"
#include "compiler/workers/kernel_compiler.h"
#include "compiler/workers/process.h"

namespace kiln::workers {

// A worker that was lost to a job.
struct Failure {
  enum class Kind {
    kDied,      // it ended by itself
    kKilled,    // something else ended it with SIGKILL
    kLate,      // it took longer than a job may, and was ended
    kMemory,    // it needed more memory than a job may
    kNonsense,  // it sent what is no answer to the job, and was ended
  };
  Kind kind = Kind::kDied;
  std::string what;    // "took longer than 60 seconds"
  std::string said;    // the first that it wrote to stderr: any bytes
  bool again = false;  // another worker tries this job
};

// Thread-safe. There are never more workers than callers at a time and `spares`, so who calls also
// bounds what runs; nor more than `workers_max`, where callers wait for one another. Else, where no
// worker is idle, one more starts, which takes about 20 ms; it ends when it has had nothing to do
// for some seconds.
//
// Workers start on a thread of the pool's own: the system ends them when the thread that started
// them ends (PR_SET_PDEATHSIG), and callers' threads may be short-lived. That thread also ends idle
// ones. `mutex_` is never held while a process starts, ends or works.
class Pool : public KernelCompiler {
 public:
  struct Options {
    // Starts a worker: WorkerCommand, or a test's.
    std::vector<std::string> command;
    int spares = 1;       // workers that are kept though nobody needs them
    int workers_max = 0;  // at a time, more than `spares`. 0: as many as callers
    // Of one job. The memory is limited by the command; this is for messages. 0: no limit.
    int seconds_max = 0;
    int64_t memory_bytes_max = 0;
    SteadyClock now;
    // Called for each worker that is lost to a job, on the caller's thread.
    std::function<void(const KernelJob&, const Failure&)> on_failure;
  };

  // Returns at once: the spares start meanwhile.
  explicit Pool(Options options);
  // Nobody calls Compile any more.
  ~Pool() override;

  // As the workers' CompileFunction; beyond that RESOURCE_EXHAUSTED for what takes too long or too
  // much memory, INTERNAL for what two workers die of, and UNAVAILABLE if none can be started. The
  // message says what would help, but not the kernel's name.
  absl::StatusOr<drivers::KernelImage> Compile(const KernelJob& job) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all workers; what is being compiled, and all that comes later, fails with `why`.
  void Stop(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  // For tests: the processes that are idle.
  std::vector<pid_t> idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ProcessPointer = std::unique_ptr<Process>;
  struct Idle {
    ProcessPointer process;
    SteadyTime since;
  };
  // A caller that waits for a worker to start.
  struct Request {
    absl::StatusOr<ProcessPointer> process = ProcessPointer();
    bool done = false;
  };

  enum class Attempt { kFirst, kLast };

  // False if the worker was lost and another one should try; `image` has the error.
  bool Try(const KernelJob& job, Attempt attempt, absl::StatusOr<drivers::KernelImage>* image)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The last attempt gets no worker that was idle.
  absl::StatusOr<ProcessPointer> Take(Attempt attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(ProcessPointer process) ABSL_LOCKS_EXCLUDED(mutex_);
  // Says how the worker failed, and ends it.
  Failure End(ProcessPointer process, Transfer transfer) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  Deadline JobDeadline() const;

  // The pool's thread.
  void Keep() ABSL_LOCKS_EXCLUDED(mutex_);
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<ProcessPointer> TakeSuperfluous() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Answer(Request& request, absl::StatusOr<ProcessPointer> process)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int size() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(idle_.size() + busy_.size());
  }
  bool IsFull() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return options_.workers_max > 0 && size() >= options_.workers_max;
  }
  bool WantsMore() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    if (!requests_.empty()) return !IsFull();
    return spares_to_start_ > 0 && size() < options_.spares;
  }
  bool HasWork() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !stopped_.ok() || WantsMore();
  }

  const Options options_;
  std::atomic<uint64_t> last_job_{0};
  mutable absl::Mutex mutex_;
  std::deque<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // the last one was used last
  std::set<const Process*> busy_ ABSL_GUARDED_BY(mutex_);
  std::deque<Request*> requests_ ABSL_GUARDED_BY(mutex_);
  // At the beginning, and one more for each failure. A count, and those that something else ended
  // do not come back by themselves: where every worker dies at once, starting has to end.
  int spares_to_start_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // OK: it is not
  std::thread keeper_;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_POOL_H_
