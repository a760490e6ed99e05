// One submission of a list. It can stop at a wait and continue later, and it can end between two
// tasks of a kernel, so that other submissions get the device.
#ifndef KILN_DRIVERS_CPU_EXECUTION_H_
#define KILN_DRIVERS_CPU_EXECUTION_H_

#include <cstddef>

#include "absl/types/span.h"
#include "drivers/cpu/prepared_list.h"
#include "drivers/cpu/worker_pool.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers::cpu {

// Used by one thread at a time, the pool's caller; it may change between calls.
class Execution {
 public:
  // Starts the submission after the previous one of the same program. slots[i] is the address of
  // slot i. `options` and `pool` must outlive this object. Requires: CheckSlots has accepted the
  // slots; options.begin is a position in the list.
  Execution(Program& program, absl::Span<char* const> slots, const SubmitOptions& options,
            WorkerPool& pool);

  // Runs the remaining commands and blocks at waits; ends early if SubmitOptions::goes_on returns
  // false.
  void Finish() { RunCommands(/*blocks=*/true); }
  // Runs the remaining commands up to a wait that would block. Returns true if none is left.
  bool GoOn() { return RunCommands(/*blocks=*/false); }

  // Requires: GoOn has stopped at a wait. Returns whether it would still block.
  bool IsHeld() const;
  // Requires: the list has signals or waits.
  SignalGroup& group() const { return *options_.group; }
  // Requires: all commands have ended.
  SubmitResult& result() { return result_; }

 private:
  bool RunCommands(bool blocks);
  // Asks whether the list may write over its inputs, if it does so from the next command on.
  absl::Status BeginCommit() const;
  void NoteTime();
  void End();
  // Returns true if the command has ended.
  bool RunWhole(const Program::Call& call);
  // For lists that may end early: runs a command from task_ on, until its end or the end of the
  // slice. Returns false if the slice ended first; then nothing more is run.
  bool RunWhileItGoesOn(Program::Call& call);
  // Whether the current slice is not over, or another one follows.
  bool GoesOn();
  // As many tasks as fit into the rest of the slice, at most a quarter of a slice; at least one.
  Program::Portion NextPortion(const Program::Call& call) const;

  Program& program_;
  const SubmitOptions& options_;
  WorkerPool& pool_;
  const SteadyTime start_;
  SteadyTime last_end_;  // of the last ended command
  size_t next_ = 0;      // command
  // For lists that may end early.
  int64_t task_ = 0;   // the first remaining task of the next command
  SteadyTime looked_;  // last clock reading
  SteadyTime slice_end_;
  SubmitResult result_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_EXECUTION_H_
