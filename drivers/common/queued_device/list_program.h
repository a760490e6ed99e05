// A command list in the form in which a driver enqueues it, and one run of it.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_PROGRAM_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_PROGRAM_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "drivers/common/check.h"
#include "drivers/common/queued_device/device_context.h"
#include "drivers/common/queued_device/host_mirror.h"
#include "drivers/common/queued_device/list_call.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers {

// A point in a device's work: ends when everything enqueued before it has ended.
class Completion {
 public:
  virtual ~Completion() = default;
  // Blocks until then. Returns the error of that work, if any.
  virtual absl::Status Await() = 0;
};

class ListRun;

// Immutable after construction, except for what a driver's class keeps from run to run; that is
// used on the device's submission thread only.
class ListProgram {
 public:
  virtual ~ListProgram();

  // The calls [begin, end), which are enqueued together, and the command that follows them.
  struct Part {
    size_t begin = 0;
    size_t end = 0;
    enum class Then : uint8_t { kNothing, kSignal, kWait } then = Then::kNothing;
    int signal = 0;
    size_t command = 0;  // the number of that signal or wait
  };

  const ListNeeds& needs() const { return needs_; }
  // The memory that replaces host slots; empty if the vendor's library copies from host slots
  // directly.
  const HostMirror& mirror() const { return mirror_; }
  // At least one.
  const std::vector<Part>& parts() const { return parts_; }
  size_t num_slots() const { return written_.size(); }
  size_t num_commands() const { return num_commands_; }
  // Only for comparison.
  const DeviceContext* owner() const { return owner_.get(); }

  // Called on any thread.
  virtual std::shared_ptr<ListRun> NewRun() = 0;

  // Whether two slots, one of which is written, have the same memory. The commands then have
  // dependencies that their slots do not show.
  bool SlotsOverlap(absl::Span<char* const> addresses) const;

 protected:
  ListProgram(std::shared_ptr<DeviceContext> context, ListNeeds needs)
      : owner_(std::move(context)),
        needs_(std::move(needs)),
        written_(needs_.slot_bytes.size(), false) {}

  // Calls Add and EndPart for the commands of the list. INVALID_ARGUMENT: a kernel does not belong
  // to this context. RESOURCE_EXHAUSTED: no memory for the mirror. Requires: CheckCommandList gave
  // needs() for this list; it is called once.
  enum class HostSlots : uint8_t { kMirrored, kDirect };
  absl::Status Build(CommandList list, HostSlots host_slots = HostSlots::kMirrored);

 private:
  // Adds the list's next call: copies and fills with bytes, launches of kernels of this context.
  virtual absl::Status Add(ListCall call) = 0;
  // Ends a part. Returns the number of calls so far.
  virtual size_t EndPart() = 0;

  // Checks that parts follow one another without a gap, each but the last with a signal or a wait.
  void Validate() const;
  absl::Status PlaceMirror();
  absl::Status Take(const LaunchCommand& launch, size_t command);
  absl::Status Take(const CopyCommand& copy, size_t command);
  absl::Status Take(const FillCommand& fill, size_t command);
  absl::Status Take(const SignalCommand& signal, size_t command);
  absl::Status Take(const WaitCommand& wait, size_t command);
  absl::Status TakeCall(ListCall call);
  void Close(Part::Then then, int signal, size_t command);

  const std::shared_ptr<DeviceContext> owner_;
  const ListNeeds needs_;
  HostMirror mirror_;
  size_t num_commands_ = 0;
  std::vector<bool> written_;  // by slot
  std::vector<Part> parts_;
};

// One submission of a list. A driver's class adds the vendor's objects of its work, which the
// device may use until AwaitEnd or Drain has returned.
class ListRun {
 public:
  virtual ~ListRun() = default;

  // Called with the end of what was enqueued before a signal; null: nothing was.
  using OnSignal = absl::FunctionRef<void(std::shared_ptr<Completion> before, int signal)>;
  // On the submission thread, one run at a time: enqueues all commands without waiting for them,
  // with two exceptions: a wait blocks until its signal, and copies from and to mirrored host slots
  // wait for everything before them. Sets result.status; if commands are timed, also the seconds of
  // waits and of those copies.
  void EnqueueAll(const ListProgram& program, const SteadyClock& now, OnSignal on_signal);

  // On the completion thread: waits for the list's end, if all of it was enqueued. Returns the
  // error that occurred on the device, if any.
  virtual absl::Status AwaitEnd() = 0;
  // After an error: waits for whatever may still use the buffers, unless the device is lost.
  virtual void Drain() = 0;
  // If the list succeeded: adds the times of commands, if those are timed, and returns the seconds
  // that the device measured for the list; 0: it measures none.
  virtual double Measure() { return 0; }
  // Releases the vendor's objects. Called last.
  virtual void Release() = 0;

  std::vector<char*> slots;  // the start of each slot; of host slots: of their mirrors, if any
  std::vector<Buffer*> buffers;
  SubmitOptions options;
  std::function<void(SubmitResult)> done;
  SteadyTime start;
  SubmitResult result;

 private:
  absl::Status EndPart(const ListProgram::Part& part, const SteadyClock& now, OnSignal on_signal);

  // EnqueueAll calls Begin; then for each part Enqueue, followed by Mark (a signal) or Flush
  // (before a wait); then End. After an error the rest is skipped.
  virtual absl::Status Begin() = 0;
  virtual absl::Status Enqueue(size_t part) = 0;
  virtual absl::StatusOr<std::shared_ptr<Completion>> Mark() = 0;
  virtual absl::Status Flush() { return absl::OkStatus(); }
  virtual absl::Status End() = 0;
  // Waits for everything enqueued so far, by earlier runs, too. Only for lists with a mirror.
  virtual absl::Status AwaitEnqueued() { return absl::OkStatus(); }
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_LIST_PROGRAM_H_
