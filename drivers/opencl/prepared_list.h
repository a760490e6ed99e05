// A command list as a flat array of OpenCL calls.
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
#include "drivers/opencl/recorded_launches.h"
#include "drivers/opencl/slot_table.h"

namespace kiln::drivers::opencl {

// The device work of one submission.
struct Enqueued {
  struct CommandEvent {
    size_t command;
    Handle<cl_event> event;
  };
  // In the order of the commands: events of the first and last enqueued command, of those before a
  // signal, and of all if commands are timed.
  std::vector<CommandEvent> events;
  // If a command buffer comes first: a marker before it, because the command buffer's own event
  // only gives its end.
  Handle<cl_event> before;
  // The enqueued command buffers; reserved for this submission until it has ended.
  std::vector<std::shared_ptr<const CommandBuffer>> buffers;
  // The source of the slot table's update, until the list has ended.
  std::vector<char*> table;
  // The status of enqueueing; if commands are timed, also the seconds of the waits.
  SubmitResult result;

  // Releases everything except the result. Requires: the list has ended.
  void Release();
};

// The calls of one list. Used only on the device's submission thread, one run at a time.
class Program {
 public:
  // INVALID_ARGUMENT: the list is malformed, or a kernel does not belong to this context.
  // RESOURCE_EXHAUSTED: no memory for the slot table.
  static absl::StatusOr<std::shared_ptr<Program>> Make(std::shared_ptr<Context> context,
                                                       const CommandList& list);

  const ListNeeds& needs() const { return needs_; }
  // Only for comparison.
  const Context* context() const { return context_.get(); }

  // Called with the last event before a signal (an owned reference; null if nothing was enqueued
  // yet) and the signal.
  using OnSignal = std::function<void(Handle<cl_event> before, int signal)>;

  // Enqueues all commands in order without waiting for them, except that a wait blocks until its
  // signal. slots[i] is the address of slot i. Updates the slot table, and those arguments that are
  // addresses, if they changed since the previous submission. Launches with constant arguments are
  // enqueued as command buffers where the device supports them, unless commands are timed, memory
  // had to be named to kernels, or the list runs for the first time.
  Enqueued Enqueue(cl_command_queue queue, absl::Span<char* const> slots,
                   const SubmitOptions& options, const SteadyClock& now, const OnSignal& on_signal);

 private:
  enum class Kind : uint8_t { kLaunch, kCopy, kFill, kSignal, kWait };
  struct Call {
    Kind kind;
    uint8_t value = 0;              // kFill
    bool wants_event = false;       // also when commands are not timed
    int signal = 0;                 // kSignal, kWait
    size_t bytes = 0;               // kCopy, kFill; 0: nothing is enqueued
    Handle<cl_kernel> kernel = {};  // used by this call only, so its arguments persist
    const KernelImage* image = nullptr;
    GridRange points = {};  // kLaunch
    size_t first_operand = 0;
    size_t num_operands = 0;

    size_t block() const { return static_cast<size_t>(image->block_size); }
    size_t threads() const { return static_cast<size_t>(points.size()) * block(); }
  };
  // A kernel argument, a copy's destination or source, or a fill's destination.
  struct Operand {
    int slot;
    int64_t offset;
    const char* set = nullptr;  // kLaunch: the address set in the kernel
  };

  Program(std::shared_ptr<Context> context, size_t num_slots)
      : context_(std::move(context)), num_slots_(num_slots) {}
  absl::Status Add(const LaunchCommand& launch);
  // Sets the constant parameters: all of a kernel that takes a slot table, and the first grid
  // point.
  absl::Status SetParameters(const LaunchCommand& launch, cl_kernel kernel);
  absl::Status SetSlotParameters(const LaunchCommand& launch, cl_kernel kernel);
  absl::Status Add(const CopyCommand& copy);
  absl::Status Add(const FillCommand& fill);
  absl::Status Add(const SignalCommand& command);
  absl::Status Add(const WaitCommand& command);
  void AddOperands(absl::Span<const SlotRange> ranges);
  void ChooseEvents();
  void ChooseRecorded();
  static bool IsEnqueued(const Call& call);

  // Enqueues what is not recorded: a call, a signal or a wait.
  absl::Status EnqueueOne(size_t number, cl_command_queue queue, absl::Span<char* const> slots,
                          const SubmitOptions& options, const SteadyClock& now,
                          const OnSignal& on_signal, Enqueued* enqueued);
  // Returns whether the launches were enqueued. If not, none was, and the caller enqueues them one
  // by one.
  absl::StatusOr<bool> EnqueueRecorded(RecordedLaunches& launches, cl_command_queue queue,
                                       Enqueued* enqueued);
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
  int64_t releases_ = 0;  // memory releases when the arguments were set
  // In the order of the calls. After the calls, so that it is destroyed before their kernels.
  std::vector<RecordedLaunches> recorded_;
  int64_t namings_ = -1;  // namings at the last run; -1: the list has not run yet
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
