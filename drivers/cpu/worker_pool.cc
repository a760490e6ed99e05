#include "drivers/cpu/worker_pool.h"

#include <immintrin.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "drivers/cpu/memory.h"

namespace kiln::drivers::cpu {
namespace {

constexpr std::chrono::microseconds kSpinTime(40);
constexpr int kPausesBetweenClocks = 16;

// Until `done` or the spin time is over: whether it is done.
template <typename Done>
bool Spin(const Done& done) {
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesBetweenClocks; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

}  // namespace

WorkerPool::WorkerPool(const std::string& name, int threads) : cores_(AllowedCores()) {
  if (threads == 1 || static_cast<int>(cores_.size()) != threads) cores_.clear();
  for (int i = 0; i < threads; ++i) scratch_.push_back(ReserveMemory(kScratchBytes));
  for (int i = 1; i < threads; ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    pthread_setname_np(workers_.back().native_handle(), name.substr(0, 15).c_str());
  }
}

WorkerPool::~WorkerPool() {
  stopping_ = true;
  ++epoch_;
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  for (void* scratch : scratch_) UnmapMemory(scratch, kScratchBytes);
}

// Where the system forbids it the thread stays free, which is slower at worst.
void WorkerPool::BindToCore(int thread) const {
  if (cores_.empty()) return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(cores_[thread], &own);
  pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

void WorkerPool::Run(const Job& job) {
  if (caller_ != std::this_thread::get_id()) {
    caller_ = std::this_thread::get_id();
    BindToCore(0);
  }
  const uint64_t count = (job.tasks + job.chunk - 1) / job.chunk;
  const uint64_t number = (state_.load(std::memory_order_relaxed) >> 32) + 1;
  job_ = job;
  chunks_ended_.store(0, std::memory_order_relaxed);
  state_.store(number << 32 | count << 16, std::memory_order_release);
  ++epoch_;
  epoch_.notify_all();
  while (RunChunk(scratch_[0])) {
  }
  WaitForChunks(count);
}

bool WorkerPool::RunChunk(void* scratch) {
  uint64_t state = state_.load(std::memory_order_acquire);
  uint64_t chunk;
  do {
    chunk = state & 0xffff;
    if (chunk == (state >> 16 & 0xffff)) return false;
  } while (!state_.compare_exchange_weak(state, state + 1, std::memory_order_acquire));
  const int count = static_cast<int>(state >> 16 & 0xffff);
  const int64_t begin = static_cast<int64_t>(chunk) * job_.chunk;
  job_.run(job_.context, begin, std::min(begin + job_.chunk, job_.tasks), scratch);
  if (chunks_ended_.fetch_add(1, std::memory_order_acq_rel) + 1 == count)
    chunks_ended_.notify_one();
  return true;
}

void WorkerPool::WaitForChunks(int count) {
  auto ended = [this, count] { return chunks_ended_.load(std::memory_order_acquire) == count; };
  if (Spin(ended)) return;
  for (int seen = chunks_ended_.load(std::memory_order_acquire); seen != count;
       seen = chunks_ended_.load(std::memory_order_acquire)) {
    chunks_ended_.wait(seen, std::memory_order_acquire);
  }
}

void WorkerPool::Work(int worker) {
  BindToCore(worker);
  while (true) {
    // Read before looking for work: a job that comes later changes it.
    const int epoch = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;
    bool worked = false;
    while (RunChunk(scratch_[worker])) worked = true;
    if (worked && SpinForWork(epoch)) continue;
    epoch_.wait(epoch, std::memory_order_acquire);
  }
}

bool WorkerPool::SpinForWork(int epoch) const {
  return Spin([this, epoch] { return epoch_.load(std::memory_order_acquire) != epoch; });
}

}  // namespace kiln::drivers::cpu
