// Host slots (CommandList::host_slots) for devices whose copies need memory of their own driver.
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_HOST_MIRROR_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_HOST_MIRROR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "drivers/interface/buffer.h"
#include "drivers/interface/clock.h"
#include "drivers/interface/command_list.h"

namespace kiln::drivers {

// Replaces the buffers in a list's host slots by host memory that the device can reach. The list's
// copies use this memory; the thread that submits the list to the device copies between it and the
// buffers, part by part. Each signal and each wait ends a part; parts are counted from 0. Not
// thread-safe.
class HostMirror {
 public:
  // An empty mirror.
  HostMirror() = default;
  // Mirrors a checked list, and changes its copies to offsets in the mirror.
  explicit HostMirror(CommandList* list);

  // The size of the memory it needs, 0 if the list has no host slots; and the address of that
  // memory.
  size_t bytes() const { return bytes_; }
  // Requires: it is placed once.
  void Place(char* memory);
  char* memory() const { return memory_; }
  // The address of a host slot's part of the mirror.
  char* slot(size_t number) const { return memory_ + slot_offsets_[number]; }

  // One run of the list.
  struct Run {
    absl::Span<Buffer* const> buffers;  // of all slots
    const SteadyClock& now;
    std::vector<double>* command_seconds;  // adds the time of copies; empty: not timed
  };
  // Waits until the device has ended all the work it was given, including earlier runs. Its errors
  // are returned to the caller.
  using Await = absl::FunctionRef<absl::Status()>;
  // Called before and after a part of the list is given to the device. If the part reads (Before)
  // or writes (After) host memory, waits for the device and copies that memory.
  absl::Status Before(size_t part, const Run& run, Await await) const;
  absl::Status After(size_t part, const Run& run, Await await) const;

 private:
  // Checks that copies are in the order of parts and commands, with bytes of mirrored slots.
  void Validate() const;

  // Bytes of a slot that a command copies.
  struct Copied {
    size_t part = 0;
    size_t command = 0;
    bool is_read = false;
    SlotRange host = {};
    int64_t offset = 0;  // of the same bytes in the slot's mirror
  };

  absl::Span<const Copied> OfPart(size_t part) const;
  absl::Status Copy(size_t part, bool is_read, const Run& run, Await await) const;

  std::vector<Copied> copies_;         // in the list's order
  std::vector<int64_t> slot_offsets_;  // in the memory
  size_t bytes_ = 0;
  char* memory_ = nullptr;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_HOST_MIRROR_H_
