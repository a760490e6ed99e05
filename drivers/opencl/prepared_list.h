// A command list as a flat array of calls of OpenCL's.
#ifndef KILN_DRIVERS_OPENCL_PREPARED_LIST_H_
#define KILN_DRIVERS_OPENCL_PREPARED_LIST_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"
#include "drivers/opencl/context.h"
#include "drivers/opencl/kernel.h"
#include "drivers/opencl/slot_table.h"

namespace kiln::drivers::opencl {

// What the device was given of one submission.
struct Enqueued {
  struct CommandEvent {
    size_t command;
    Handle<cl_event> event;
  };
  // In the order of the commands: of the first and the last that was enqueued, of those before a
  // signal, and of all where each is timed.
  std::vector<CommandEvent> events;
  // What the slot table is written from, until the list has ended.
  std::vector<char*> table;
  // The status of enqueueing; if commands are timed, the seconds of the waits.
  SubmitResult result;
};

// The calls of one list. Used by the device's submission thread only, once at a time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel is not this context's. RESOURCE_EXHAUSTED:
  // no memory for the slot table.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       const CommandList& list);

  const ListNeeds& needs() const { return needs_; }
  // To compare only.
  const Context* context() const { return context_.get(); }

  // Called with the last event before a signal (its own reference; null if nothing was enqueued
  // yet) and the signal.
  using OnSignal = std::function<void(Handle<cl_event> before, int signal)>;

  // Enqueues all commands in order and returns without waiting for them, except that a wait blocks
  // until its signal. slots[i] is the address of slot i. Writes the slot table if it has others,
  // and sets those arguments that are addresses and not what they were in the submission before.
  Enqueued Enqueue(cl_command_queue queue, absl::Span<char* const> slots,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kFill, kSignal, kWait };
  struct Call {
    Kind kind;
    uint8_t value = 0;         // kFill
    bool wants_event = false;  // also when commands are not timed
    int signal = 0;            // kSignal, kWait
    size_t bytes = 0;          // kCopy, kFill; of none nothing is enqueued
    Handle<cl_kernel> kernel =
        {};  // of this call alone, so that its arguments stay from run to run
    const KernelImage* image = nullptr;
    size_t first_operand = 0;
    size_t num_operands = 0;
  };
  // An argument, or a copy's destination and source, or what is filled.
  struct Operand {
    int slot;
    int64_t offset;
    const char* set = nullptr;  // kLaunch: what the kernel has
  };

  Program(std::shared_ptr<Context> context, size_t num_slots)
      : context_(std::move(context)), num_slots_(num_slots) {}
  absl::Status Add(const LaunchCommand& launch);
  // Of a kernel that takes a slot table: they stay.
  absl::Status SetParameters(const LaunchCommand& launch, cl_kernel kernel);
  absl::Status Add(const CopyCommand& copy);
  absl::Status Add(const FillCommand& fill);
  absl::Status Add(const SignalCommand& command);
  absl::Status Add(const WaitCommand& command);
  void AddOperands(absl::Span<const SlotRange> ranges);
  void ChooseEvents();
  static bool IsEnqueued(const Call& call);

  absl::Status EnqueueCall(const Call& call, cl_command_queue queue, absl::Span<char* const> slots,
                           cl_event* event);
  cl_int EnqueueLaunch(const Call& call, cl_command_queue queue, absl::Span<char* const> slots,
                       cl_event* event);

  const std::shared_ptr<Context> context_;
  const size_t num_slots_;
  ListNeeds needs_;
  std::unique_ptr<SlotTable> table_;  // null if no kernel takes one
  std::vector<Call> calls_;
  std::vector<Operand> operands_;
  int64_t releases_ = 0;  // of memory, when the operands' arguments were set
};

class OpenClPreparedList : public PreparedList {
 public:
  explicit OpenClPreparedList(std::shared_ptr<Program> program) : program_(std::move(program)) {}
  // Shared with the submissions in flight, so that a list may be destroyed before they end.
  const std::shared_ptr<Program>& program() const { return program_; }

 private:
  std::shared_ptr<Program> program_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_PREPARED_LIST_H_
