// Core sharing for lists that wait for one another on more devices than there are cores.
#ifndef KILN_DRIVERS_CPU_GROUP_THREADS_H_
#define KILN_DRIVERS_CPU_GROUP_THREADS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/cpu/execution.h"
#include "drivers/interface/clock.h"

namespace kiln::drivers::cpu {

// Each device has a thread. If each thread waited for its own list's signals, every core would
// switch between all its threads at every exchange, which takes longer than a small kernel. So a
// thread whose list has to wait sets it aside and runs another list of the same group as far as it
// gets. As many threads of a group as there are cores run all of its lists; the others sleep until
// their own list has ended.
//
// Only lists of one group help each other, since they wait for each other anyway: no list waits for
// another group's kernels, and the system schedules all other work of the devices. Thread-safe.
class GroupThreads {
 public:
  // `cores`: the number of threads that can run at once. Called repeatedly, since it may change.
  GroupThreads(std::function<int()> cores, SteadyClock now);

  // Runs a list with signals or waits to its end, on the calling thread and on threads that call
  // this for lists of the same group; meanwhile this thread may run their lists. Requires: the list
  // has a group; it is not being run.
  void Run(Execution& execution) ABSL_LOCKS_EXCLUDED(mutex_);

  // How often a list was run by another list's thread.
  int64_t helped() const { return helped_; }
  // The number of threads that sleep because enough others of their groups are awake.
  int asleep() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A list, and the thread that called Run for it.
  struct Member {
    explicit Member(Execution& list) : execution(list) {}
    const SignalGroup& group() const { return execution.group(); }

    Execution& execution;
    bool is_aside = false;  // stopped at a wait, and no thread runs it
    bool has_ended = false;
    bool is_awake = true;   // the thread runs lists of the group
    absl::CondVar changed;  // signalled when the list has ended or the thread is woken
  };

  // Checks that each list has one entry and one state (running, aside or ended), that no more lists
  // of a group run than its threads are awake, and that one of them is.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LookAtCores() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Runs the list on the thread of `self`. Unlocks the mutex meanwhile.
  void GoOn(Member& member, const Member& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the list of the group that was set aside first among those that can continue; null:
  // none.
  Member* Take(const SignalGroup& group) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int Awake(const SignalGroup& group) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Sleep(Member& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Leave(const Member& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<int()> ask_for_cores_;
  const SteadyClock now_;
  std::atomic<int64_t> helped_ = 0;
  mutable absl::Mutex mutex_;
  int cores_ ABSL_GUARDED_BY(mutex_) = 1;
  SteadyTime next_look_ ABSL_GUARDED_BY(mutex_);
  std::vector<Member*> members_ ABSL_GUARDED_BY(mutex_);  // most recently set aside last
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_GROUP_THREADS_H_
