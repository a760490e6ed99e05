// A few threads and a queue: for compilation and for copies that may block.
#ifndef KILN_SERVER_RUNTIME_THREAD_POOL_H_
#define KILN_SERVER_RUNTIME_THREAD_POOL_H_

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::runtime {

// Thread-safe. The destructor runs the queued tasks, then joins.
class ThreadPool {
 public:
  explicit ThreadPool(int threads);
  ~ThreadPool();
  void Schedule(std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::deque<std::function<void()>> tasks_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_THREAD_POOL_H_
