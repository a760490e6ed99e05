// The threads of one CPU device.
#ifndef KILN_DRIVERS_CPU_WORKER_POOL_H_
#define KILN_DRIVERS_CPU_WORKER_POOL_H_

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace kiln::drivers::cpu {

// A number of independent tasks. `run` may be called from several threads at once with disjoint
// ranges.
struct Job {
  void (*run)(const void* context, int64_t begin, int64_t end, void* scratch) = nullptr;
  const void* context = nullptr;
  int64_t tasks = 0;
  int64_t chunk = 1;  // tasks that one thread takes at once; at most kMaxChunks chunks in all
};

// The caller of Run and threads - 1 workers. Workers spin for some tens of microseconds after a
// job, since the next one of a list comes soon, then sleep until a job wakes them.
//
// A pool of as many threads as the process may use cores binds each thread, the caller too, to a
// core of its own: else the kernel wakes a worker on its caller's core and leaves both there for
// many jobs while another core idles. Other processes still get their share: a thread whose core is
// busy takes fewer chunks.
class WorkerPool {
 public:
  static constexpr int64_t kMaxChunks = 65535;
  // Of address space for each thread; a kernel cannot have more.
  static constexpr int64_t kScratchBytes = int64_t{1} << 28;

  // `name` is the threads'. `threads` >= 1.
  WorkerPool(const std::string& name, int threads);
  ~WorkerPool();
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  int threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Runs the job on all threads and returns when it has ended. One caller at a time.
  void Run(const Job& job);

  // kScratchBytes for the caller of Run, aligned to pages.
  void* caller_scratch() const { return scratch_[0]; }

 private:
  void Work(int worker);
  // Binds the calling thread to the core of this number, if there is one for each thread.
  void BindToCore(int thread) const;
  // Takes the next chunk of the current job, if there is one, and runs it.
  bool RunChunk(void* scratch);
  bool SpinForWork(int epoch) const;
  void WaitForChunks(int count);

  std::vector<int> cores_;      // by thread; empty if the threads are not bound
  std::thread::id caller_;      // that was bound
  std::vector<void*> scratch_;  // by thread; the caller's first
  std::vector<std::thread> workers_;

  // Written by the caller while no chunk is left or running; read by those who took a chunk.
  Job job_;
  // Number of the job << 32 | chunks << 16 | chunks taken. Taking a chunk by compare-and-swap
  // proves that job_ is still the job whose number was read, and keeps it until the chunk has
  // ended.
  std::atomic<uint64_t> state_ = 0;
  std::atomic<int> chunks_ended_ = 0;
  // Changes with every job and at the end: what sleeping workers wait on.
  std::atomic<int> epoch_ = 0;
  std::atomic<bool> stopping_ = false;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_WORKER_POOL_H_
