// Threads that serve many owners in turn: who asks for much holds up nobody else.
#ifndef KILN_SERVER_RUNTIME_FAIR_POOL_H_
#define KILN_SERVER_RUNTIME_FAIR_POOL_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::runtime {

// Thread-safe. The tasks of one owner begin in their order; at most `most_of_one` of them run at a
// time, so that a newcomer finds a thread. The destructor runs what is queued, then joins.
class FairPool {
 public:
  FairPool(int threads, int most_of_one);
  ~FairPool();
  // `owner` is compared and nothing else.
  void Schedule(const void* owner, std::function<void()> task) ABSL_LOCKS_EXCLUDED(mutex_);
  // The same unless `most_waiting` tasks of the owner that came through here wait already. False:
  // nothing was scheduled.
  bool TrySchedule(const void* owner, size_t most_waiting, std::function<void()> task)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Task {
    std::function<void()> run;
    bool counts = false;  // towards `most_waiting`
  };
  struct Owner {
    std::deque<Task> waiting;
    size_t counted = 0;  // of those that wait
    int running = 0;
  };

  void Add(const void* owner, Task task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Moves the next task that may run out of its owner's queue; false if there is none now.
  bool Take(const void** owner, std::function<void()>* task) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int most_of_one_;
  absl::Mutex mutex_;
  absl::CondVar changed_;
  std::map<const void*, Owner> owners_ ABSL_GUARDED_BY(mutex_);  // with tasks that wait or run
  std::deque<const void*> turns_ ABSL_GUARDED_BY(mutex_);        // those with tasks that wait
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_FAIR_POOL_H_
