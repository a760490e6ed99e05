// What a device is asked to do: a list of commands on numbered slots, recorded once, replayed with
// other buffers in the slots. The counterpart of a CUDA graph, a Level Zero command list, or a
// vector of AQL packets.
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
// kBufferAlignmentMin, those of kernels' arguments of the device's buffer_alignment.
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
  // The points of the kernel's grid that run; nothing: all. A part of them only where the image
  // says that it runs parts.
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
// Signals and waits order lists of several devices. A wait blocks the list until the signal with
// this number has been raised in the same group of submissions (SubmitOptions::group); what the
// other list did before it can then be read.
struct SignalCommand {
  int signal = 0;
};
struct WaitCommand {
  int signal = 0;
};
using Command = std::variant<LaunchCommand, CopyCommand, FillCommand, SignalCommand, WaitCommand>;

struct CommandList {
  int num_slots = 0;
  std::vector<Command> commands;  // each sees what the ones before it wrote
  // Slots whose buffers are the host's memory (drivers/common/host_buffer.h) and no device's, which
  // only copies use: through it devices hand each other what they cannot reach. Others use it as
  // well, in an order that signals make. No two of these slots have the same memory.
  std::vector<int> host_slots = {};
};

// A list as a device replays it. Belongs to the device that prepared it.
class PreparedList {
 public:
  virtual ~PreparedList() = default;
  // Of the host's memory, what it holds in place of that in its host slots.
  virtual int64_t host_bytes() const { return 0; }
};

// A place in a list between two tasks: in front of this task of this command. A command's tasks are
// the points of a kernel's grid, or the bytes of a copy or a fill.
struct ListPosition {
  int command = 0;
  int64_t task = 0;
};

struct SubmitOptions {
  // Time each command. Costs a little: sample it.
  bool time_commands = false;
  // Required for lists with signals or waits: the group of submissions to which this one belongs,
  // with as many signals as they name. A waiting list holds up its device, so groups that share
  // devices must be submitted to all of them in the same order.
  std::shared_ptr<SignalGroup> group = nullptr;
  // Once this is true nobody wants what the list computes, and the device may leave it where it is:
  // see Device::StopUnwanted. Null: it is always wanted.
  std::shared_ptr<const std::atomic<bool>> unwanted = nullptr;
  // For devices that yield (Device::yields), and lists without signals and waits. Asked on the
  // device's thread, between two tasks, when the list has run for slice_seconds and whenever it has
  // run for as long again, with the seconds that it has run. False: it ends there, and
  // SubmitResult::rest says where. It must not block. Null: the list runs to its end.
  std::function<bool(double seconds)> goes_on = nullptr;
  double slice_seconds = 0;
  // Where it begins: the `rest` of an earlier submission with the same buffers.
  ListPosition begin = {};
};

struct SubmitResult {
  absl::Status status;
  double seconds = 0;  // of the whole list on the device
  // One for each command of which something was run, if asked for.
  std::vector<double> command_seconds;
  // What `goes_on` has left.
  std::optional<ListPosition> rest = std::nullopt;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_COMMAND_LIST_H_
