// Pending work of a device behind a queue: lists, of which only a few are with the device at once,
// and host-device copies, which lists wait for.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_IN_FLIGHT_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_IN_FLIGHT_H_

#include <algorithm>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "proto/check/check.h"

namespace kiln::drivers {

// A buffer is named by its start on the device. Thread-safe.
class InFlight {
 public:
  explicit InFlight(int lists_max) : lists_max_(lists_max) {}

  // The states of a list: submitted; enqueued, once there is room; ended; reported, when its `done`
  // has returned. Requires: End and Report are called once for each Enqueue and Submit.
  void Submit() {
    absl::MutexLock lock(&mutex_);
    ++unreported_;
    KILN_VALIDATE(*this, copies_to_.size());
  }
  void Enqueue() {
    absl::MutexLock lock(&mutex_);
    while (enqueued_ >= lists_max_) Wait();
    ++enqueued_;
    KILN_VALIDATE(*this, copies_to_.size());
  }
  void End() {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GT(enqueued_, 0);
    --enqueued_;
    KILN_VALIDATE(*this, copies_to_.size());
    fell_.SignalAll();
  }
  void Report() {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GT(unreported_, 0);
    --unreported_;
    KILN_VALIDATE(*this, copies_to_.size());
    fell_.SignalAll();
  }

  // A copy counts until its `done` has returned. `written`: the buffer that it writes, or null.
  // Requires: ReportCopy is called once for each StartCopy, with the same buffer.
  void StartCopy(const char* written) {
    absl::MutexLock lock(&mutex_);
    ++unreported_;
    if (written != nullptr) ++copies_to_[written];
    KILN_VALIDATE(*this, copies_to_.size());
  }
  void ReportCopy(const char* written) {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GT(unreported_, 0);
    const auto found = copies_to_.find(written);
    KILN_CHECK_EQ(found == copies_to_.end(), written == nullptr) << "a copy that was not started";
    if (found != copies_to_.end() && --found->second == 0) copies_to_.erase(found);
    --unreported_;
    KILN_VALIDATE(*this, copies_to_.size());
    fell_.SignalAll();
  }
  // Blocks until no copy writes these buffers. A caller that learns the end of a list that waited
  // has then already learned of a failed copy.
  void AwaitCopiesTo(absl::Span<char* const> buffers) {
    absl::MutexLock lock(&mutex_);
    const auto is_written = [this](const char* buffer) ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return copies_to_.contains(buffer);
    };
    while (std::any_of(buffers.begin(), buffers.end(), is_written)) Wait();
  }

  // Blocks until everything has been reported.
  void AwaitAll() {
    absl::MutexLock lock(&mutex_);
    while (unreported_ > 0) Wait();
  }

  // The number of threads in Enqueue, AwaitCopiesTo or AwaitAll.
  int waiting() const {
    absl::MutexLock lock(&mutex_);
    return waiting_;
  }

 private:
  // Checks that copies that write a buffer are among what is unreported, and that counters are
  // within their bounds.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    KILN_CHECK_GE(enqueued_, 0);
    KILN_CHECK_LE(enqueued_, lists_max_);
    KILN_CHECK_GE(waiting_, 0);
    int64_t copies = 0;
    for (const auto& [buffer, count] : copies_to_) {
      KILN_CHECK(buffer != nullptr);
      KILN_CHECK_GT(count, 0);
      copies += count;
    }
    KILN_CHECK_LE(copies, unreported_);
  }
  void Wait() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    ++waiting_;
    fell_.Wait(&mutex_);
    KILN_CHECK_GT(waiting_, 0);
    --waiting_;
  }

  const int lists_max_;
  mutable absl::Mutex mutex_;
  absl::CondVar fell_;                              // one of the counters below fell
  int64_t unreported_ ABSL_GUARDED_BY(mutex_) = 0;  // lists and copies
  int enqueued_ ABSL_GUARDED_BY(mutex_) = 0;
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  // The number of copies that write each buffer.
  absl::flat_hash_map<const char*, int> copies_to_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_IN_FLIGHT_H_
