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
#include "drivers/opencl/recorded_launches.h"
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
  // Of a marker in front of all, where a command buffer comes first: its event tells of its end
  // alone.
  Handle<cl_event> before;
  // What this submission enqueued, and until it has ended nobody else may.
  std::vector<std::shared_ptr<const CommandBuffer>> buffers;
  // What the slot table is written from, until the list has ended.
  std::vector<char*> table;
  // The status of enqueueing; if commands are timed, the seconds of the waits.
  SubmitResult result;

  // All but the result: the list has ended.
  void Release();
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
  // Launches whose arguments stay are enqueued as command buffers where the device has them, unless
  // commands are timed, kernels had to be told of memory, or the list runs for the first time.
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
    GridRange points = {};  // kLaunch
    size_t first_operand = 0;
    size_t num_operands = 0;

    size_t block() const { return static_cast<size_t>(image->block_size); }
    size_t threads() const { return static_cast<size_t>(points.size()) * block(); }
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
  // Those that stay: of a kernel that takes a slot table all, and the first grid point.
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

  // What is not recorded: a call, a signal or a wait.
  absl::Status EnqueueOne(size_t number, cl_command_queue queue, absl::Span<char* const> slots,
                          const SubmitOptions& options, const SteadyClock& now,
                          const OnSignal& on_signal, Enqueued* enqueued);
  // Whether it was: otherwise nothing of it is, and the launches are enqueued one by one.
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
  int64_t releases_ = 0;  // of memory, when the operands' arguments were set
  // Behind the kernels, and so gone before them. In the order of the calls.
  std::vector<RecordedLaunches> recorded_;
  int64_t namings_ = -1;  // of memory, when they could be recorded; -1: the list has not run yet
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
