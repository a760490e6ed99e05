// One submission of a list, which can stop at a wait and go on later, and can end between two tasks
// of a kernel, so that others get the device.
#ifndef KILN_DRIVERS_CPU_EXECUTION_H_
#define KILN_DRIVERS_CPU_EXECUTION_H_

#include <cstddef>

#include "absl/types/span.h"
#include "drivers/cpu/prepared_list.h"
#include "drivers/cpu/worker_pool.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers::cpu {

// For one thread at a time, which is the pool's caller; it need not always be the same.
class Execution {
 public:
  // Begins it, behind the last one of the same program. slots[i] is the address of slot i.
  // `options` and `pool` outlive it.
  Execution(Program& program, absl::Span<char* const> slots, const SubmitOptions& options,
            WorkerPool& pool);

  // Runs all that is left, and blocks where that has to wait; or what SubmitOptions::goes_on lets
  // it.
  void Finish() { RunCommands(/*blocks=*/true); }
  // Runs what is left up to a wait that would block. True: nothing is left.
  bool GoOn() { return RunCommands(/*blocks=*/false); }

  // Once GoOn has stopped at a wait: whether that would still block.
  bool IsHeld() const;
  // Lists with signals or waits have one.
  SignalGroup& group() const { return *options_.group; }
  // Once nothing is left.
  SubmitResult& result() { return result_; }

 private:
  bool RunCommands(bool blocks);
  void NoteTime();
  void End();
  // True: the command has ended.
  bool RunWhole(const Program::Call& call);
  // For lists that may end early. Runs a command from task_ on, unless its slice ends before.
  // False: it does, and nothing more is run.
  bool RunWhileItGoesOn(Program::Call& call);
  // Whether the slice is not over yet, or another one follows.
  bool GoesOn();
  // As many tasks as fit into what is left of the slice, a quarter of one at most; one at least.
  Program::Portion NextPortion(const Program::Call& call) const;

  Program& program_;
  const SubmitOptions& options_;
  WorkerPool& pool_;
  const SteadyTime start_;
  SteadyTime last_end_;  // of a command
  size_t next_ = 0;      // command
  // For lists that may end early.
  int64_t task_ = 0;   // of the next command, the first that is left
  SteadyTime looked_;  // at the clock
  SteadyTime slice_end_;
  SubmitResult result_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_EXECUTION_H_
