// How a kernel ends that nobody wants any more. Its machine code asks for nothing while it runs,
// and may run for minutes.
#ifndef KILN_DRIVERS_CPU_INTERRUPTION_H_
#define KILN_DRIVERS_CPU_INTERRUPTION_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace kiln::drivers::cpu {

// A range of tasks, as worker_pool.h has it. It must hold nothing that another thread waits for,
// and nothing that a destructor gives back: it may end between any two instructions.
struct Range {
  void (*run)(const void* context, int64_t begin, int64_t end, void* scratch) = nullptr;
  const void* context = nullptr;
  int64_t begin = 0;
  int64_t end = 0;
  void* scratch = nullptr;
};

// Runs it on this thread, unless `unwanted` is true. Where Interrupt is called for this thread
// after `unwanted` has become true, the range is left where it is. Null: it is always wanted.
// False: not all of it was run.
//
// The signal's handler jumps back here (siglongjmp(3)). Under ThreadSanitizer, which keeps signals
// back until the thread calls a function that it knows, ranges run to their ends.
bool RunInterruptibly(const Range& range, const std::atomic<bool>* unwanted);

// Has thread `thread` of this process (gettid(2)) look whether what it runs is still wanted. Does
// not wait. Nothing happens to a thread that runs no range, or that has ended.
void Interrupt(pid_t thread);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_INTERRUPTION_H_
