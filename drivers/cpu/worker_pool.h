// The threads of one CPU device.
#ifndef KILN_DRIVERS_CPU_WORKER_POOL_H_
#define KILN_DRIVERS_CPU_WORKER_POOL_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "drivers/cpu/core_binding.h"
#include "drivers/interface/clock.h"

namespace kiln::drivers::cpu {

// A number of independent tasks. `run` may be called from several threads at once with disjoint
// ranges.
struct Job {
  void (*run)(const void* context, int64_t begin, int64_t end, void* scratch) = nullptr;
  const void* context = nullptr;
  int64_t tasks = 0;
  int64_t chunk = 1;  // the fewest that are worth taking at once; at most kMaxChunks chunks in all
  // Once this is true the tasks that are left need not be run; see Interrupt. May be null.
  const std::atomic<bool>* unwanted = nullptr;
  int64_t first = 0;  // the number of the first task
};

// The caller of Run and threads - 1 workers.
//
// Nobody is given a share in advance. Threads take a small part of what is left of a job, and the
// less is left the less they take, down to a chunk: one that loses its core for some milliseconds
// holds up no more than it has just taken, and the others do the rest. Workers spin for some tens
// of microseconds after a job, since the next one of a list comes soon, then sleep until a job
// wakes them; no thread spins for longer, whatever it waits for.
//
// A pool of as many threads as the process may use cores binds each thread, the caller too, to a
// core of its own: else the kernel wakes a worker on its caller's core and leaves both there for
// many jobs while another core idles. Threads whose core others use, too, go free (BindingPolicy).
class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr int64_t kMaxChunks = 65535;
  // Of address space for each thread; a kernel cannot have more.
  static constexpr int64_t kScratchBytes = int64_t{1} << 28;
  // How often the number of cores is asked for.
  static constexpr std::chrono::seconds kCoresInterval{1};

  struct Options {
    std::string name;  // the threads'
    int threads = 1;   // at least 1
    // How many of them can run at once; the others sleep. It may change: affinity masks and control
    // groups do. Null: all of them.
    std::function<int()> cores = nullptr;
    SteadyClock now = Clock::now;
  };

  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return options_.threads; }
  SteadyTime Now() const { return options_.now(); }

  // Runs the job on all threads and returns when it has ended. One caller at a time, which need not
  // always be the same thread.
  void Run(const Job& job);
  // The same on the caller's thread alone: for a job that is not worth waking the others.
  void RunAlone(const Job& job);

  // Has every thread look whether what it runs is still wanted: what is not is left where it is
  // (interruption.h). For any thread, at any time; does not wait.
  void Interrupt();

  // How many workers sleep since there are more threads than cores.
  int sitting_out() const { return sitting_out_; }

 private:
  void Work(int worker);
  void MeetCaller();
  // Adapts active_ and binds a new caller.
  void PrepareCaller();
  // Takes a part of the current job, if anything is left, and runs it.
  bool RunPart(void* scratch);
  bool SpinForWork(int epoch) const;
  void WaitForChunks(int count);

  const Options options_;
  std::vector<void*> scratch_;                  // by thread; the caller's first
  std::vector<std::atomic<pid_t>> thread_ids_;  // likewise; 0 before it has begun
  std::vector<std::thread> workers_;

  // The caller's.
  std::thread::id caller_;
  std::optional<CoreBinding> binding_;
  Clock::time_point next_look_;

  // Written by the caller while no chunk is left or running; read by those who took some.
  Job job_;
  // Number of the job << 32 | chunks << 16 | chunks taken. Taking chunks by compare-and-swap proves
  // that job_ is still the job whose number was read, and keeps it until they have ended.
  std::atomic<uint64_t> state_ = 0;
  std::atomic<int> chunks_ended_ = 0;
  // Changes with every job and at the end: what sleeping workers wait on.
  std::atomic<int> epoch_ = 0;
  // Threads that take part. What the others wait on.
  std::atomic<int> active_;
  std::atomic<int> sitting_out_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_WORKER_POOL_H_
