// Work for a device: a list of commands on numbered slots, recorded once and replayed with other
// buffers in the slots. The counterpart of a CUDA graph, a Level Zero command list or a vector of
// AQL packets.
#ifndef KILN_DRIVERS_INTERFACE_COMMAND_LIST_H_
#define KILN_DRIVERS_INTERFACE_COMMAND_LIST_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "drivers/interface/signal_group.h"

namespace kiln::drivers {

class LoadedKernel;

// Bytes [offset, offset + bytes) of the buffer in a slot. Offsets are multiples of
// kBufferAlignmentMin; for kernel arguments, multiples of the device's buffer_alignment.
struct SlotRange {
  int slot = 0;
  int64_t offset = 0;
  int64_t bytes = 0;
};

// Points [begin, end) of a kernel's grid.
struct GridRange {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

struct LaunchCommand {
  const LoadedKernel* kernel = nullptr;
  std::vector<SlotRange> arguments;
  // The grid points that run; nullopt: all. A subrange is allowed only if the image has
  // `runs_parts`.
  std::optional<GridRange> points = std::nullopt;
};
struct CopyCommand {
  SlotRange source;
  SlotRange destination;  // of the same size; must not overlap
};
struct FillCommand {
  SlotRange destination;
  uint8_t value = 0;
};
// Signals and waits order lists of several devices. A wait blocks its list until the signal with
// this number has been raised in the same group of submissions (SubmitOptions::group). After that
// the list can read everything that the signalling list wrote before the signal.
struct SignalCommand {
  int signal = 0;
};
struct WaitCommand {
  int signal = 0;
};
using Command = std::variant<LaunchCommand, CopyCommand, FillCommand, SignalCommand, WaitCommand>;

struct CommandList {
  int num_slots = 0;
  std::vector<Command> commands;  // each sees the writes of all earlier ones
  // Slots whose buffers are host memory (drivers/common/host_buffer.h), not memory of a device.
  // Only copies use them: devices exchange data through them that they cannot reach directly. Other
  // lists use the same memory, ordered by signals. No two of these slots share memory.
  std::vector<int> host_slots = {};
};

// A list in the form that the device replays. Belongs to the device that prepared it.
class PreparedList {
 public:
  virtual ~PreparedList() = default;
  // Bytes of host memory that it holds in place of the memory in its host slots.
  virtual int64_t host_bytes() const { return 0; }
};

// A position between two tasks of a list: before this task of this command. The tasks of a command
// are the points of a kernel's grid, or the bytes of a copy or a fill.
struct ListPosition {
  int command = 0;
  int64_t task = 0;
};

struct SubmitOptions {
  // Times each command. This has a small cost, so enable it only for a sample of the runs.
  bool time_commands = false;
  // Required for lists with signals or waits: the group of submissions that this one belongs to. It
  // needs as many signals as the lists name. A waiting list blocks its device, so groups that share
  // devices must be submitted to all of them in the same order.
  std::shared_ptr<SignalGroup> group = nullptr;
  // Once this is true the list is cancelled: nobody needs its results, and the device may stop it
  // at any point (see Device::StopUnwanted). Null: the list cannot be cancelled.
  std::shared_ptr<const std::atomic<bool>> unwanted = nullptr;
  // For devices that commit (Device::commits), and lists that write over their inputs, from the
  // command `commit` on. Called on the device's thread before that command begins; it must not
  // block. An error ends the list there, and nothing is written over. May be called again if the
  // list ends early there. Null: the list does not write over its inputs.
  std::function<absl::Status()> begin_commit = nullptr;
  int commit = 0;
  // For devices that yield (Device::yields), and lists without signals and waits. Called on the
  // device's thread between two tasks, with the seconds that the list has run: first after
  // slice_seconds, then after every further slice_seconds. If it returns false, the list ends there
  // and SubmitResult::rest is the position. It must not block. Null: the list runs to its end.
  std::function<bool(double seconds)> goes_on = nullptr;
  double slice_seconds = 0;
  // The start position: `rest` of an earlier submission with the same buffers.
  ListPosition begin = {};
};

struct SubmitResult {
  absl::Status status;
  double seconds = 0;  // device time of the whole list
  // One entry for each command that ran at least in part, if requested.
  std::vector<double> command_seconds;
  // The position to continue from, if `goes_on` ended the list.
  std::optional<ListPosition> rest = std::nullopt;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_COMMAND_LIST_H_
