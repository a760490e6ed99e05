// The thread that runs a device's submissions in order of arrival.
#ifndef KILN_DRIVERS_COMMON_SUBMISSION_QUEUE_H_
#define KILN_DRIVERS_COMMON_SUBMISSION_QUEUE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::drivers {

// Thread-safe. Sleeps while the queue is empty.
class SubmissionQueue {
 public:
  // `name` is the thread's name; Linux keeps 15 characters.
  explicit SubmissionQueue(const std::string& name);
  // Runs the remaining tasks.
  ~SubmissionQueue();

  // Returns at once; `task` runs on the queue's thread and may push more.
  // Requires: `task` is not null.
  void Push(std::function<void()> task);

  // The number of tasks that have not ended, including the one that calls this.
  int64_t unfinished() const;

  // Blocks until all tasks pushed before this call have ended. Must not be called from a task.
  void Wait();

 private:
  void Run();
  // Checks that each task that has not ended waits, except at most one, which runs.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  int64_t pushed_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t ended_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::CondVar work_;  // something was pushed, or stopping
  absl::CondVar ended_changed_;
  std::thread thread_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_SUBMISSION_QUEUE_H_
