#include "drivers/cpu/worker_pool.h"

#include <immintrin.h>
#include <pthread.h>

#include <algorithm>
#include <utility>

#include "drivers/cpu/interruption.h"
#include "drivers/cpu/memory.h"
#include "drivers/cpu/thread_control.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

constexpr std::chrono::microseconds kSpinTime(40);
// Reading the clock takes longer than reading an atomic.
constexpr int kPausesBetweenClocks = 16;
// A thread takes this fraction of its even share of the remaining tasks.
constexpr uint64_t kPartsOfShare = 8;

// Spins until `done` or the end of the spin time. Returns whether it is done.
template <typename Done>
bool Spin(const SteadyClock& now, const Done& done) {
  const SteadyTime end = now() + kSpinTime;
  do {
    for (int i = 0; i < kPausesBetweenClocks; ++i) {
      if (done()) return true;
      _mm_pause();
    }
  } while (now() < end);
  return done();
}

}  // namespace

WorkerPool::WorkerPool(Options options)
    : options_(std::move(options)), thread_ids_(options_.threads), active_(options_.threads) {
  KILN_CHECK_GE(threads(), 1) << options_.name;
  for (int i = 0; i < threads(); ++i) scratch_.push_back(ReserveMemory(kScratchBytes));
  for (int i = 1; i < threads(); ++i) {
    workers_.emplace_back([this, i] { Work(i); });
    pthread_setname_np(workers_.back().native_handle(), options_.name.substr(0, 15).c_str());
  }
}

WorkerPool::~WorkerPool() {
  stopping_ = true;
  // Workers wait on either of two atomics. Change both, so that all workers see stopping_.
  active_ = threads();
  active_.notify_all();
  ++epoch_;
  epoch_.notify_all();
  for (std::thread& worker : workers_) worker.join();
  for (void* scratch : scratch_) UnmapMemory(scratch, kScratchBytes);
}

void WorkerPool::Validate() const {
  const uint64_t state = state_.load(std::memory_order_relaxed);
  KILN_CHECK_EQ(state & 0xffff, state >> 16 & 0xffff) << "chunks taken of " << options_.name;
  KILN_CHECK_EQ(chunks_ended_.load(), state >> 16 & 0xffff) << options_.name;
  KILN_CHECK_EQ(scratch_.size(), threads());
  KILN_CHECK_EQ(thread_ids_.size(), threads());
  KILN_CHECK_EQ(workers_.size() + 1, threads());
  KILN_CHECK(active_ >= 1 && active_ <= threads()) << active_.load();
  KILN_CHECK(sitting_out_ >= 0 && sitting_out_ < threads()) << sitting_out_.load();
}

void WorkerPool::MeetCaller() {
  if (caller_ == std::this_thread::get_id()) return;
  caller_ = std::this_thread::get_id();
  thread_ids_[0] = ThreadId();
  PreferShortSlices();
  binding_.emplace(0, threads(), options_.now);
}

void WorkerPool::PrepareCaller() {
  MeetCaller();
  if (options_.cores == nullptr) return;
  const Clock::time_point now = options_.now();
  if (now < next_look_) return;
  next_look_ = now + kCoresInterval;
  const int active = std::clamp(options_.cores(), 1, threads());
  if (active_.exchange(active) < active) active_.notify_all();
}

void WorkerPool::Run(const Job& job) {
  KILN_CHECK(job.run != nullptr);
  KILN_CHECK(job.tasks >= 1 && job.chunk >= 1) << job.tasks << " tasks in " << job.chunk;
  PrepareCaller();
  const uint64_t count = (job.tasks + job.chunk - 1) / job.chunk;
  // The state has 16 bits for them.
  KILN_CHECK_LE(count, kChunksMax) << job.tasks << " tasks in chunks of " << job.chunk;
  const uint64_t before = state_.load(std::memory_order_relaxed);
  KILN_CHECK_EQ(before & 0xffff, before >> 16 & 0xffff) << "a job begins during another";
  const uint64_t number = (before >> 32) + 1;
  job_ = job;
  // Relaxed is enough: the release store of state_ below publishes this and the job.
  chunks_ended_.store(0, std::memory_order_relaxed);
  state_.store(number << 32 | count << 16, std::memory_order_release);
  ++epoch_;
  epoch_.notify_all();
  binding_->Awake();
  while (RunPart(scratch_[0])) {
  }
  WaitForChunks(static_cast<int>(count));
  KILN_VALIDATE(*this, 1);
}

void WorkerPool::RunAlone(const Job& job) {
  KILN_CHECK(job.run != nullptr);
  MeetCaller();
  RunInterruptibly({job.run, job.context, job.first, job.first + job.tasks, scratch_[0]},
                   job.unwanted);
}

bool WorkerPool::RunPart(void* scratch) {
  const uint64_t parts = kPartsOfShare * active_.load(std::memory_order_relaxed);
  uint64_t state = state_.load(std::memory_order_acquire);
  uint64_t first, count, taken;
  do {
    first = state & 0xffff;
    count = state >> 16 & 0xffff;
    if (first == count) return false;
    KILN_CHECK_LT(first, count) << options_.name;
    taken = std::max<uint64_t>((count - first) / parts, 1);
  } while (!state_.compare_exchange_weak(state, state + taken, std::memory_order_acquire));
  const int64_t begin = static_cast<int64_t>(first) * job_.chunk;
  const int64_t end = std::min(static_cast<int64_t>(first + taken) * job_.chunk, job_.tasks);
  RunInterruptibly({job_.run, job_.context, job_.first + begin, job_.first + end, scratch},
                   job_.unwanted);
  // The last thread notifies the caller. Release and acquire make the writes of all threads visible
  // to it.
  const uint64_t ended = chunks_ended_.fetch_add(taken, std::memory_order_acq_rel) + taken;
  KILN_CHECK_LE(ended, count) << "chunks of " << options_.name << " ended";
  if (ended == count) chunks_ended_.notify_one();
  return true;
}

void WorkerPool::WaitForChunks(int count) {
  auto ended = [this, count] { return chunks_ended_.load(std::memory_order_acquire) == count; };
  const bool spun = Spin(options_.now, ended);
  binding_->Asleep();
  if (spun) return;
  for (int seen = chunks_ended_.load(std::memory_order_acquire); seen != count;
       seen = chunks_ended_.load(std::memory_order_acquire)) {
    // Returns only when the value has changed, so a part that ends between load and wait is not
    // missed.
    chunks_ended_.wait(seen, std::memory_order_acquire);
  }
}

void WorkerPool::Interrupt() {
  for (const std::atomic<pid_t>& thread : thread_ids_)
    if (const pid_t id = thread; id != 0) cpu::Interrupt(id);
}

void WorkerPool::Work(int worker) {
  KILN_CHECK(worker >= 1 && worker < threads()) << worker;
  thread_ids_[worker] = ThreadId();
  PreferShortSlices();
  CoreBinding binding(worker, threads(), options_.now);
  while (true) {
    // Read before looking for work: a later job changes it.
    const int epoch = epoch_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;
    const int active = active_.load(std::memory_order_acquire);
    if (worker >= active) {
      ++sitting_out_;
      active_.wait(active, std::memory_order_acquire);
      --sitting_out_;
      continue;
    }
    bool worked = false;
    binding.Awake();
    while (RunPart(scratch_[worker])) worked = true;
    // A thread that found no work does not spin: the others had taken all of it.
    if (worked && SpinForWork(epoch)) continue;
    binding.Asleep();
    epoch_.wait(epoch, std::memory_order_acquire);
  }
}

bool WorkerPool::SpinForWork(int epoch) const {
  return Spin(options_.now,
              [this, epoch] { return epoch_.load(std::memory_order_acquire) != epoch; });
}

}  // namespace kiln::drivers::cpu
