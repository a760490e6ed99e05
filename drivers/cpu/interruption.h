// Stops a kernel that was cancelled. Its machine code has no cancellation checks, and may run for
// minutes.
#ifndef KILN_DRIVERS_CPU_INTERRUPTION_H_
#define KILN_DRIVERS_CPU_INTERRUPTION_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace kiln::drivers::cpu {

// A range of tasks, as in worker_pool.h. It may be stopped between any two instructions, so it must
// hold no lock and nothing that a destructor releases.
struct Range {
  void (*run)(const void* context, int64_t begin, int64_t end, void* scratch) = nullptr;
  const void* context = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  void* scratch = nullptr;
};

// Runs the range on this thread, unless `unwanted` is true. If Interrupt is called for this thread
// after `unwanted` has become true, the range is abandoned where it is. Null: it cannot be
// cancelled. Returns false if not all of it was run.
//
// The signal's handler jumps back here (siglongjmp(3)). ThreadSanitizer delays signals until the
// thread calls an intercepted function, so under it ranges run to their ends.
bool RunInterruptibly(const Range& range, const std::atomic<bool>* unwanted);

// Makes the thread with id `thread` (gettid(2)) of this process check whether its range is
// cancelled. Does not wait. Has no effect on a thread that runs no range or has ended.
void Interrupt(pid_t thread);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_INTERRUPTION_H_
