// Host slots (CommandList::host_slots) for devices that copy only to and from memory of their own
// driver's.
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

// A list's own memory in place of that in its host slots: of the host's, where the device reaches
// it. The list's copies use that, and the thread that gives the list to the device copies between
// both, where signals and waits order it. They end the parts of a list, which are counted from 0.
// Used by one thread.
class HostMirror {
 public:
  // Nothing is mirrored.
  HostMirror() = default;
  // Of a list that has been checked: its copies name places in the mirror from here on.
  explicit HostMirror(CommandList* list);

  // What it needs, 0 if the list has no host slots; and where that is from here on.
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
  // Before and after the device is given a part of the list: if it reads host memory, or writes it,
  // waits and copies that.
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
