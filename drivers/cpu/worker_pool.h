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
  int64_t chunk = 1;  // the fewest tasks worth taking at once; at most kChunksMax chunks in all
  // Once this is true the remaining tasks need not be run; see Interrupt. May be null.
  const std::atomic<bool>* unwanted = nullptr;
  int64_t first = 0;  // the number of the first task
};

// The caller of Run and threads - 1 workers.
//
// No thread gets a fixed share. Threads take a small part of the remaining tasks, less as fewer
// remain, down to a chunk. So a thread that loses its core for some milliseconds delays only the
// part that it has just taken, and the others do the rest. Workers spin for some tens of
// microseconds after a job, since the next one of a list comes soon, then sleep until a job wakes
// them. No thread spins for longer.
//
// A pool with as many threads as the process may use cores binds each thread, including the caller,
// to its own core. Otherwise the kernel wakes a worker on its caller's core and leaves both there
// for many jobs while another core idles. Threads whose core is also used by others are unbound
// (BindingPolicy).
class WorkerPool {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr int64_t kChunksMax = 65535;
  // Address space for each thread's scratch; the limit for a kernel.
  static constexpr int64_t kScratchBytes = int64_t{1} << 28;
  // How often `cores` is called.
  static constexpr std::chrono::seconds kCoresInterval{1};

  struct Options {
    std::string name;  // name of the threads
    int threads = 1;   // at least 1
    // The number of threads that can run at once; the others sleep. It may change, because affinity
    // masks and control groups do. Null: all of them.
    std::function<int()> cores = nullptr;
    SteadyClock now = Clock::now;
  };

  explicit WorkerPool(Options options);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return options_.threads; }
  SteadyTime Now() const { return options_.now(); }

  // Runs the job on all threads and returns when it has ended. One caller at a time, but it may be
  // a different thread each time. Requires: the job has at least one task, and at most kChunksMax
  // chunks.
  void Run(const Job& job);
  // Runs the job on the caller's thread only: for jobs that are not worth waking the workers.
  void RunAlone(const Job& job);

  // Makes every thread check whether its job is cancelled, and abandon it if so (interruption.h).
  // Thread-safe; does not wait.
  void Interrupt();

  // The number of workers that sleep because there are more threads than cores.
  int sitting_out() const { return sitting_out_; }

 private:
  // Checks that no job is under way: all chunks of the last one were taken and have ended, and each
  // thread has its entries.
  void Validate() const;
  void Work(int worker);
  void MeetCaller();
  // Updates active_ and binds a new caller.
  void PrepareCaller();
  // Takes a part of the current job, if any is left, and runs it.
  bool RunPart(void* scratch);
  bool SpinForWork(int epoch) const;
  void WaitForChunks(int count);

  const Options options_;
  std::vector<void*> scratch_;                  // by thread; the caller's first
  std::vector<std::atomic<pid_t>> thread_ids_;  // likewise; 0 until the thread has started
  std::vector<std::thread> workers_;

  // Used by the caller only.
  std::thread::id caller_;
  std::optional<CoreBinding> binding_;
  Clock::time_point next_look_;

  // Written by the caller while no chunk is left or running; read by threads that have taken
  // chunks.
  Job job_;
  // Job number << 32 | chunks << 16 | chunks taken. A successful compare-and-swap that takes chunks
  // proves that job_ is still the job whose number was read, and keeps it until those chunks have
  // ended.
  std::atomic<uint64_t> state_ = 0;
  std::atomic<int> chunks_ended_ = 0;
  // Changes with every job and at the end; sleeping workers wait on it.
  std::atomic<int> epoch_ = 0;
  // The number of threads that take part; the others wait on it.
  std::atomic<int> active_;
  std::atomic<int> sitting_out_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_WORKER_POOL_H_
