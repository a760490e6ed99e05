// How lists that wait for one another share the cores where their devices outnumber them.
#ifndef KILN_DRIVERS_CPU_GANG_THREADS_H_
#define KILN_DRIVERS_CPU_GANG_THREADS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "drivers/cpu/execution.h"
#include "drivers/interface/clock.h"

namespace kiln::drivers::cpu {

// Each device has a thread. If each of them waited for its own list's signals, every core would go
// through all of the threads on it at every exchange, and that takes longer than a small kernel. So
// a thread whose list has to wait puts it aside and runs another list of the same group, as far as
// that gets. As many threads of a group as there are cores look after all of its lists; the others
// sleep until theirs has ended.
//
// Only lists of one group help each other, which wait for each other anyway: no list waits for
// another group's kernels, and all else that devices run is the system's to spread over the cores.
// Thread-safe.
class GangThreads {
 public:
  // `cores`: how many threads can run at once. Asked for again and again, since it may change.
  GangThreads(std::function<int()> cores, SteadyClock now);

  // Runs a list with signals or waits to its end, on the calling thread and on those that call this
  // for lists of the same group; this thread runs theirs meanwhile.
  void Run(Execution& execution) ABSL_LOCKS_EXCLUDED(mutex_);

  // How often a list was run by another list's thread.
  int64_t helped() const { return helped_; }
  // How many threads sleep since others of their groups are awake.
  int asleep() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // A list, and the thread that brought it.
  struct Member {
    explicit Member(Execution& list) : execution(list) {}
    const SignalGroup& group() const { return execution.group(); }

    Execution& execution;
    bool is_aside = false;  // stopped at a wait, and in nobody's hands
    bool has_ended = false;
    bool is_awake = true;   // the thread looks after lists of the group
    absl::CondVar changed;  // the list has ended, or the thread is awake
  };

  void LookAtCores() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // On behalf of `self`. Unlocks the mutex while the list runs.
  void GoOn(Member& member, const Member& self) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Of the group's lists that need wait no longer the one that was put aside first; null: none.
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
  std::vector<Member*> members_ ABSL_GUARDED_BY(mutex_);  // what was put aside last stands last
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_GANG_THREADS_H_
