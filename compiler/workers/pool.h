// Compiles kernels in worker processes, with limits on time and memory: a failure of a worker is an
// error only of the kernel it was compiling.
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

// A worker lost during a job.
struct Failure {
  enum class Kind {
    kDied,      // it exited or crashed by itself
    kKilled,    // another process killed it with SIGKILL
    kLate,      // it exceeded a job's time limit, and was killed
    kMemory,    // it exceeded a job's memory limit
    kNonsense,  // it sent something that is not an answer to the job, and was killed
  };
  Kind kind = Kind::kDied;
  std::string what;    // "took longer than 60 seconds"
  std::string said;    // the beginning of its stderr: any bytes
  bool again = false;  // another worker will retry this job
};

// Thread-safe. There are at most as many workers as concurrent callers plus `spares`, so callers
// also bound the load; and at most `workers_max`, beyond which callers wait. If no worker is idle
// and the limit allows it, a new one starts, which takes about 20 ms. A worker beyond the spares
// ends after some idle seconds.
//
// Workers are started on a thread of the pool: the system kills them when the thread that started
// them ends (PR_SET_PDEATHSIG), and callers' threads may be short-lived. That thread also ends idle
// workers. `mutex_` is never held while a process starts, ends or works.
class Pool : public KernelCompiler {
 public:
  struct Options {
    // The command that starts a worker: WorkerCommand, or a test's.
    std::vector<std::string> command;
    int spares = 1;       // idle workers that are kept
    int workers_max = 0;  // at a time, more than `spares`; 0: no limit
    // Workers get only processor time that others leave. The limit of a job then counts the time
    // that its worker gets, and a kYieldingPart of the time that passes: a worker that waits for a
    // processor must not count as one that hangs.
    bool yields = false;
    // Limits of one job. The command enforces the memory limit; here it is for messages. 0: no
    // limit.
    int seconds_max = 0;
    int64_t memory_bytes_max = 0;
    SteadyClock now;
    // The processor time that a process has used.
    std::function<std::chrono::nanoseconds(pid_t)> processor_time = ProcessorTimeOf;
    // Called for each worker that was started, on the pool's thread. May be null.
    std::function<void()> on_start = nullptr;
    // Called for each worker lost during a job, on the caller's thread.
    std::function<void(const KernelJob&, const Failure&)> on_failure;
  };

  static constexpr int kYieldingPart = 60;

  // Returns at once; the spares start in the background.
  explicit Pool(Options options);
  // Requires: no Compile call is running, and none follows.
  ~Pool() override;

  // Returns the result of the workers' CompileFunction. Otherwise RESOURCE_EXHAUSTED if the job
  // takes too long or too much memory, INTERNAL if two workers die of it, and UNAVAILABLE if none
  // can be started. The message says what would help, but not the kernel's name.
  absl::StatusOr<drivers::KernelImage> Compile(const KernelJob& job) override
      ABSL_LOCKS_EXCLUDED(mutex_);

  // Ends all workers. Running and later jobs fail with `why`.
  void Stop(absl::Status why) ABSL_LOCKS_EXCLUDED(mutex_);

  // For tests: returns the idle processes.
  std::vector<pid_t> idle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using ProcessPointer = std::unique_ptr<Process>;
  struct Idle {
    ProcessPointer process;
    SteadyTime since;
  };
  // A caller waiting for a worker to start.
  struct Request {
    absl::StatusOr<ProcessPointer> process = ProcessPointer();
    bool done = false;
  };

  enum class Attempt { kFirst, kLast };

  // Returns false if the worker was lost and another one should retry; `image` has the error.
  bool Try(const KernelJob& job, Attempt attempt, absl::StatusOr<drivers::KernelImage>* image)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The last attempt gets a newly started worker.
  absl::StatusOr<ProcessPointer> Take(Attempt attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(ProcessPointer process) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the worker and returns how it failed.
  Failure End(ProcessPointer process, Transfer transfer) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status stopped() const ABSL_LOCKS_EXCLUDED(mutex_);
  Deadline JobDeadline(const Process& process) const;

  // Checks that no worker is in two states, that requests wait, and the bounds.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The main function of the pool's thread.
  void Keep() ABSL_LOCKS_EXCLUDED(mutex_);
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<ProcessPointer> TakeSuperfluous() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Requires: `request` is the first one.
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
  std::deque<Idle> idle_ ABSL_GUARDED_BY(mutex_);  // the last one was used most recently
  std::set<const Process*> busy_ ABSL_GUARDED_BY(mutex_);
  std::deque<Request*> requests_ ABSL_GUARDED_BY(mutex_);
  // Spares still to start: all at first, and one more after each failure. It is a count, so spares
  // that something else killed are not replaced by themselves: if every worker dies at once, the
  // pool must stop starting them.
  int spares_to_start_ ABSL_GUARDED_BY(mutex_);
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);  // OK: not stopped
  std::thread keeper_;
};

}  // namespace kiln::workers

#endif  // KILN_COMPILER_WORKERS_POOL_H_
