// What a device that works behind a queue has taken on and not ended: lists, of which few are with
// the device at once, and copies between it and the host, which lists wait for.
#ifndef KILN_DRIVERS_COMMON_IN_FLIGHT_H_
#define KILN_DRIVERS_COMMON_IN_FLIGHT_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace kiln::drivers {

// `Address` is where a buffer begins on the device; Address() is no buffer's. Thread-safe.
template <typename Address>
class InFlight {
 public:
  explicit InFlight(int lists_max) : lists_max_(lists_max) {}

  // A list is submitted; then enqueued, once there is room; then ended; then reported, when its
  // `done` has returned.
  void Submit() {
    absl::MutexLock lock(&mutex_);
    ++unreported_;
  }
  void Enqueue() {
    absl::MutexLock lock(&mutex_);
    while (enqueued_ >= lists_max_) Wait();
    ++enqueued_;
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    --enqueued_;
    fell_.SignalAll();
  }
  void Report() {
    absl::MutexLock lock(&mutex_);
    --unreported_;
    fell_.SignalAll();
  }

  // A copy, until its `done` has returned. `written`: the buffer that it writes, if it writes one.
  void StartCopy(Address written) {
    absl::MutexLock lock(&mutex_);
    ++unreported_;
    if (written != Address()) ++copies_to_[written];
  }
  void ReportCopy(Address written) {
    absl::MutexLock lock(&mutex_);
    const auto found = copies_to_.find(written);
    if (found != copies_to_.end() && --found->second == 0) copies_to_.erase(found);
    --unreported_;
    fell_.SignalAll();
  }
  // Until no copy writes these buffers: whoever hears of the end of a list that waited has heard of
  // a copy's error.
  void AwaitCopiesTo(absl::Span<const Address> buffers) {
    absl::MutexLock lock(&mutex_);
    const auto is_written = [this](Address buffer) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return copies_to_.contains(buffer);
    };
    while (std::any_of(buffers.begin(), buffers.end(), is_written)) Wait();
  }

  // Until everything has been reported.
  void AwaitAll() {
    absl::MutexLock lock(&mutex_);
    while (unreported_ > 0) Wait();
  }

  // How many threads wait in Enqueue, AwaitCopiesTo or AwaitAll.
  int waiting() const {
    absl::MutexLock lock(&mutex_);
    return waiting_;
  }

 private:
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++waiting_;
    fell_.Wait(&mutex_);
    --waiting_;
  }

  const int lists_max_;
  mutable absl::Mutex mutex_;
  absl::CondVar fell_;                              // one of these
  int64_t unreported_ ABSL_GUARDED_BY(mutex_) = 0;  // lists and copies
  int enqueued_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // How many copies write a buffer.
  absl::flat_hash_map<Address, int> copies_to_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_IN_FLIGHT_H_
