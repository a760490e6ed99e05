// Host slots (CommandList::host_slots) for devices whose copies need memory from their own driver.
#ifndef KILN_DRIVERS_COMMON_HOST_MIRROR_H_
#define KILN_DRIVERS_COMMON_HOST_MIRROR_H_

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

// Stands in for the buffers in a list's host slots: memory of the host's that the device reaches.
// The list's copies use it, and the thread that gives the list to the device copies between it and
// the buffers, part by part. Each signal and each wait ends a part; parts are counted from 0. Used
// by one thread.
class HostMirror {
 public:
  // Nothing is mirrored.
  HostMirror() = default;
  // Of a list that has been checked: its copies name places in the mirror from here on.
  explicit HostMirror(CommandList* list);

  // How much memory it needs, 0 if the list has no host slots; and where that memory is.
  size_t bytes() const { return bytes_; }
  void Place(char* memory) { memory_ = memory; }
  char* memory() const { return memory_; }
  // Where a host slot begins.
  char* slot(size_t number) const { return memory_ + slot_offsets_[number]; }

  // One run of the list.
  struct Run {
    absl::Span<Buffer* const> buffers;  // of all slots
    const SteadyClock& now;
    std::vector<double>* command_seconds;  // to which is added what copies take; empty: no need
  };
  // Waits until the device has done all that it was given, of earlier runs, too. Its errors are
  // handed on.
  using Await = absl::FunctionRef<absl::Status()>;
  // Before the device is given a part of the list, and after: where the part reads host memory, or
  // writes it, waits for the device and copies that.
  absl::Status Before(size_t part, const Run& run, Await await) const;
  absl::Status After(size_t part, const Run& run, Await await) const;

 private:
  // Bytes of a slot that a command copies.
  struct Copied {
    size_t part = 0;
    size_t command = 0;
    bool is_read = false;
    SlotRange host = {};
    int64_t offset = 0;  // of the same in the slot's mirror
  };

  absl::Span<const Copied> OfPart(size_t part) const;
  absl::Status Copy(size_t part, bool is_read, const Run& run, Await await) const;

  std::vector<Copied> copies_;         // in the list's order
  std::vector<int64_t> slot_offsets_;  // in the memory
  size_t bytes_ = 0;
  char* memory_ = nullptr;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_HOST_MIRROR_H_
