#include "drivers/common/check.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"
#include "drivers/interface/device.h"

namespace kiln::drivers {
namespace {

static_assert((uint64_t{1} << kSlotOffsetBits) - kSlotOffsetMask == kBufferAlignmentMin);

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

class ListChecker {
 public:
  explicit ListChecker(const CommandList& list) : list_(list) {}

  absl::StatusOr<ListNeeds> Run() {
    if (list_.num_slots < 0) return Invalid("a command list has ", list_.num_slots, " slots");
    needs_.slot_bytes.assign(list_.num_slots, 0);
    if (absl::Status status = MarkHostSlots(); !status.ok()) return status;
    for (size_t i = 0; i < list_.commands.size(); ++i) {
      absl::Status status =
          std::visit([this](const auto& command) { return Check(command); }, list_.commands[i]);
      if (!status.ok()) return Invalid("command ", i, ": ", status.message());
    }
    return std::move(needs_);
  }

 private:
  absl::Status MarkHostSlots() {
    for (const int slot : list_.host_slots) {
      if (slot < 0 || slot >= list_.num_slots)
        return Invalid("host slot ", slot, " is not one of the list's ", list_.num_slots);
      needs_.is_host.resize(list_.num_slots, false);
      needs_.is_host[slot] = true;
    }
    return absl::OkStatus();
  }

  absl::Status Check(const LaunchCommand& launch) {
    if (launch.kernel == nullptr) return Invalid("launches no kernel");
    const KernelImage& image = launch.kernel->image();
    if (static_cast<size_t>(image.num_arguments) != launch.arguments.size()) {
      return Invalid("the kernel ", image.name, " takes ", image.num_arguments, " arguments, not ",
                     launch.arguments.size());
    }
    if (absl::Status status = CheckPoints(launch); !status.ok()) return status;
    for (const SlotRange& range : launch.arguments) {
      if (absl::Status status = Use(range); !status.ok()) return status;
      if (needs_.IsHost(range.slot)) {
        return Invalid("the kernel ", image.name, " is given slot ", range.slot,
                       ", which is host memory; only copies can use it");
      }
      if (image.takes_slot_table &&
          (range.slot >= kTableSlotsMax || range.offset > static_cast<int64_t>(kSlotOffsetMask))) {
        return Invalid("the kernel ", image.name, " takes a slot table, which has no room for ",
                       "slot ", range.slot, " at ", range.offset);
      }
    }
    return absl::OkStatus();
  }

  static absl::Status CheckPoints(const LaunchCommand& launch) {
    const KernelImage& image = launch.kernel->image();
    const auto [begin, end] = PointsOf(launch);
    if (begin < 0 || begin >= end || end > image.grid_size) {
      return Invalid("points ", begin, " to ", end, " of the kernel ", image.name,
                     ", which has a grid of ", image.grid_size);
    }
    if (image.runs_parts || end - begin == image.grid_size) return absl::OkStatus();
    return Invalid("the kernel ", image.name, " runs its whole grid alone, not points ", begin,
                   " to ", end);
  }

  absl::Status Check(const CopyCommand& copy) {
    const SlotRange& from = copy.source;
    const SlotRange& to = copy.destination;
    if (absl::Status status = Use(from); !status.ok()) return status;
    if (absl::Status status = Use(to); !status.ok()) return status;
    if (from.bytes != to.bytes)
      return Invalid("copies ", from.bytes, " bytes to ", to.bytes, " bytes");
    // Use has checked that these sums do not overflow. Two slots may hold the same buffer; that is
    // only known at submission.
    if (from.slot == to.slot && from.offset < to.offset + to.bytes &&
        to.offset < from.offset + from.bytes) {
      return Invalid("copies between overlapping ranges of slot ", from.slot);
    }
    return absl::OkStatus();
  }

  absl::Status Check(const FillCommand& fill) {
    if (absl::Status status = Use(fill.destination); !status.ok()) return status;
    if (!needs_.IsHost(fill.destination.slot)) return absl::OkStatus();
    return Invalid("fills slot ", fill.destination.slot,
                   ", which is host memory; only copies can use it");
  }
  absl::Status Check(const SignalCommand& command) { return CheckSignal(command.signal); }
  absl::Status Check(const WaitCommand& command) { return CheckSignal(command.signal); }

  absl::Status CheckSignal(int signal) {
    if (signal < 0) return Invalid("signal ", signal, " is negative");
    if (signal == std::numeric_limits<int>::max())
      return Invalid("signal ", signal, " is too large");
    needs_.needs_group = true;
    needs_.signals = std::max(needs_.signals, signal + 1);
    return absl::OkStatus();
  }

  absl::Status Use(const SlotRange& range) {
    if (range.slot < 0 || range.slot >= list_.num_slots) {
      return Invalid("slot ", range.slot, " is not one of the list's ", list_.num_slots);
    }
    if (range.offset < 0 || range.offset % kBufferAlignmentMin != 0) {
      return Invalid("offset ", range.offset, " in slot ", range.slot, " is not a multiple of ",
                     kBufferAlignmentMin);
    }
    // After this check, the end of a range can be computed.
    if (range.bytes < 0 || range.bytes > std::numeric_limits<int64_t>::max() - range.offset) {
      return Invalid("a range of ", range.bytes, " bytes at ", range.offset, " in slot ",
                     range.slot);
    }
    int64_t& needed = needs_.slot_bytes[range.slot];
    needed = std::max(needed, range.offset + range.bytes);
    return absl::OkStatus();
  }

  const CommandList& list_;
  ListNeeds needs_;
};

// Drivers may copy host memory slot by slot, so writes through one slot are not seen in another.
absl::Status CheckHostSlot(const ListNeeds& needs, absl::Span<Buffer* const> slots, size_t slot) {
  if (!needs.IsHost(slot)) return absl::OkStatus();
  const void* const memory = slots[slot]->host_pointer();
  if (memory == nullptr)
    return Invalid("slot ", slot, " is host memory, but its buffer is a device buffer");
  for (size_t before = 0; before < slot; ++before) {
    if (needs.IsHost(before) && slots[before]->host_pointer() == memory)
      return Invalid("slots ", before, " and ", slot, " are the same host memory; use one");
  }
  return absl::OkStatus();
}

}  // namespace

GridRange PointsOf(const LaunchCommand& launch) {
  return launch.points.value_or(GridRange{0, launch.kernel->image().grid_size});
}

absl::StatusOr<ListNeeds> CheckCommandList(const CommandList& list) {
  return ListChecker(list).Run();
}

absl::Status CheckSlots(const ListNeeds& needs, absl::Span<Buffer* const> slots,
                        const SubmitOptions& options) {
  if (slots.size() != needs.slot_bytes.size()) {
    return Invalid("the list has ", needs.slot_bytes.size(), " slots; ", slots.size(),
                   " buffers were given");
  }
  for (size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] == nullptr) return Invalid("slot ", i, " has no buffer");
    if (slots[i]->bytes() < needs.slot_bytes[i]) {
      return Invalid("slot ", i, " needs ", needs.slot_bytes[i], " bytes; its buffer has ",
                     slots[i]->bytes());
    }
    if (absl::Status status = CheckHostSlot(needs, slots, i); !status.ok()) return status;
  }
  if (needs.needs_group && options.group == nullptr) {
    return Invalid("the list signals or waits, so SubmitOptions::group must be set");
  }
  if (needs.needs_group && options.group->signals().count() < needs.signals) {
    return Invalid("the list names ", needs.signals, " signals; its group has ",
                   options.group->signals().count());
  }
  return absl::OkStatus();
}

absl::Status CheckCopy(const std::string& what, const Buffer& buffer, int64_t offset,
                       int64_t size) {
  // Subtraction, because the sum could overflow.
  if (offset < 0 || size < 0 || offset > buffer.bytes() || size > buffer.bytes() - offset) {
    return absl::OutOfRangeError(absl::StrCat(what, " bytes ", offset, " to ", offset, " + ", size,
                                              " of a buffer of ", buffer.bytes(), " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CheckImage(const KernelImage& image, const std::string& architecture) {
  if (image.architecture != architecture) {
    return RefusedKernel(image, "is for \"", image.architecture, "\"; this device runs \"",
                         architecture, "\"");
  }
  if (image.grid_size < 1) return RefusedKernel(image, "has a grid of ", image.grid_size);
  if (image.block_size < 1)
    return RefusedKernel(image, "has blocks of ", image.block_size, " threads");
  if (image.shared_bytes < 0) {
    return RefusedKernel(image, "shares ", image.shared_bytes,
                         " bytes among the threads of a block");
  }
  if (image.scratch_bytes < 0)
    return RefusedKernel(image, "needs ", image.scratch_bytes, " bytes of scratch");
  if (image.num_arguments < 0)
    return RefusedKernel(image, "has ", image.num_arguments, " arguments");
  if (!image.access.empty() && image.access.size() != static_cast<size_t>(image.num_arguments)) {
    return RefusedKernel(image, "declares access to ", image.access.size(), " of ",
                         image.num_arguments, " arguments");
  }
  return absl::OkStatus();
}

absl::Status CheckBlockImage(const KernelImage& image, const Target& target,
                             absl::string_view form) {
  if (absl::Status status = CheckImage(image, target.architecture); !status.ok()) return status;
  if (image.code.empty()) return RefusedKernel(image, "has no code");
  if (image.entry != 0 || image.scratch_bytes != 0) {
    return RefusedKernel(image, "has an entry at ", image.entry, " and ", image.scratch_bytes,
                         " bytes of scratch; ", form, " has neither");
  }
  const Limits& limits = target.limits;
  if (image.num_arguments > limits.arguments_max) {
    return RefusedKernel(image, "takes ", image.num_arguments, " arguments; the device takes ",
                         limits.arguments_max);
  }
  if (image.block_size > limits.threads_per_block) {
    return RefusedKernel(image, "has blocks of ", image.block_size, " threads; the device takes ",
                         limits.threads_per_block);
  }
  if (image.shared_bytes > limits.shared_bytes_per_block) {
    return RefusedKernel(image, "shares ", image.shared_bytes, " bytes in a block; the device has ",
                         limits.shared_bytes_per_block);
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers
