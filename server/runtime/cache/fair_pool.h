// Threads that serve many owners in turn: an owner with many tasks does not delay the others.
#ifndef KILN_SERVER_RUNTIME_CACHE_FAIR_POOL_H_
#define KILN_SERVER_RUNTIME_CACHE_FAIR_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::runtime {

// Thread-safe. The tasks of one owner begin in order. At most `running_max` of them run at a time,
// so that a thread is free for a new owner. The destructor runs the queued tasks, then joins.
class FairPool {
 public:
  FairPool(int threads, int running_max);
  ~FairPool();
  // `owner` is only compared, never dereferenced.
  void Schedule(const void* owner, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same, unless `waiting_max` tasks that the owner scheduled with this method are queued.
  // Returns false if nothing was scheduled.
  bool TrySchedule(const void* owner, size_t waiting_max, std::function<void()> task)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Task {
    std::function<void()> run;
    bool counts = false;  // towards `waiting_max`
  };
  struct Owner {
    std::deque<Task> waiting;
    size_t counted = 0;  // queued tasks that count
    int running = 0;
  };

  void Add(const void* owner, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the next task that may run from its owner's queue; returns false if there is none now.
  bool Take(const void** owner, std::function<void()>* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int running_max_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<const void*, Owner> owners_ ABSL_GUARDED_BY(mutex_);  // owners of queued or running
                                                                 // tasks
  std::deque<const void*> turns_ ABSL_GUARDED_BY(mutex_);        // owners of queued tasks
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_CACHE_FAIR_POOL_H_
