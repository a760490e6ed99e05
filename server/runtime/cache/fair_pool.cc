#include "server/runtime/cache/fair_pool.h"

#include <algorithm>
#include <utility>

#include "proto/check/check.h"

namespace kiln::runtime {

FairPool::FairPool(int threads, int running_max) : running_max_(running_max) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Loop(); });
}

FairPool::~FairPool() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  absl::MutexLock lock(&mutex_);
  KILN_CHECK(owners_.empty() && turns_.empty()) << owners_.size() << " owners have tasks left";
}

void FairPool::Validate() const {
  size_t queued = 0;
  for (const auto& [owner, entry] : owners_) {
    KILN_CHECK(entry.running > 0 || !entry.waiting.empty());
    KILN_CHECK_GE(entry.running, 0);
    KILN_CHECK_LE(entry.running, running_max_);
    queued += entry.waiting.empty() ? 0 : 1;
    const auto counted = std::count_if(entry.waiting.begin(), entry.waiting.end(),
                                       [](const Task& task) { return task.counts; });
    KILN_CHECK_EQ(counted, entry.counted);
    const bool has_turn = std::find(turns_.begin(), turns_.end(), owner) != turns_.end();
    KILN_CHECK_EQ(has_turn, !entry.waiting.empty());
  }
  // So none is in it twice.
  KILN_CHECK_EQ(turns_.size(), queued);
}

void FairPool::Schedule(const void* owner, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  Add(owner, {std::move(task), /*counts=*/false});
}

bool FairPool::TrySchedule(const void* owner, size_t waiting_max, std::function<void()> task) {
  absl::MutexLock lock(&mutex_);
  const auto known = owners_.find(owner);
  if (known != owners_.end() && known->second.counted >= waiting_max) return false;
  Add(owner, {std::move(task), /*counts=*/true});
  return true;
}

void FairPool::Add(const void* owner, Task task) {
  Owner& entry = owners_[owner];
  // An owner is in turns_ once, no matter how many tasks it has queued.
  if (entry.waiting.empty()) turns_.push_back(owner);
  if (task.counts) ++entry.counted;
  entry.waiting.push_back(std::move(task));
  KILN_VALIDATE(*this, owners_.size() + entry.waiting.size());
  changed_.Signal();
}

bool FairPool::Take(const void** owner, std::function<void()>* task) {
  const auto may_run = [&](const void* candidate) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return owners_.at(candidate).running < running_max_;
  };
  const auto next = std::find_if(turns_.begin(), turns_.end(), may_run);
  if (next == turns_.end()) return false;
  *owner = *next;
  turns_.erase(next);
  Owner& entry = owners_.at(*owner);
  KILN_CHECK(!entry.waiting.empty());
  *task = std::move(entry.waiting.front().run);
  if (entry.waiting.front().counts) --entry.counted;
  entry.waiting.pop_front();
  ++entry.running;
  // To the end: all other owners are served before this owner's next task.
  if (!entry.waiting.empty()) turns_.push_back(*owner);
  KILN_VALIDATE(*this, owners_.size() + entry.waiting.size());
  return true;
}

void FairPool::Loop() {
  mutex_.Lock();
  while (true) {
    const void* owner = nullptr;
    std::function<void()> task;
    if (!Take(&owner, &task)) {
      // If the remaining tasks are held back because their owner has enough running, wait for one
      // to end.
      if (stopping_ && turns_.empty()) break;
      changed_.Wait(&mutex_);
      continue;
    }
    mutex_.Unlock();
    task();
    task = nullptr;  // destroys its captures before its owner counts as idle
    mutex_.Lock();
    const auto entry = owners_.find(owner);
    KILN_CHECK(entry != owners_.end() && entry->second.running > 0);
    if (--entry->second.running == 0 && entry->second.waiting.empty()) owners_.erase(entry);
    KILN_VALIDATE(*this, owners_.size());
    // A task of this owner that was held back may run now.
    changed_.SignalAll();
  }
  mutex_.Unlock();
}

}  // namespace kiln::runtime
