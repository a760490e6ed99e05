// Dependencies between the commands of a list: the edges of its graph.
#ifndef KILN_DRIVERS_COMMON_DEPENDENCIES_H_
#define KILN_DRIVERS_COMMON_DEPENDENCIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::drivers {

// Bytes of a slot that a command uses. Kernels that do not declare how are assumed to do both.
struct RangeAccess {
  SlotRange range;
  Access access = Access::kReadWrite;
};

// Takes commands one after another. Assumes that different slots are different memory.
class Dependencies {
 public:
  explicit Dependencies(int num_slots) : slots_(num_slots) {}

  // Requires: each range is in one of the slots, and its end does not overflow.
  // Returns the numbers, counted from 0, of the earlier commands that must have ended before this
  // one begins: ascending, with some that are implied by others among them left out.
  std::vector<int> Add(absl::Span<const RangeAccess> accesses);

 private:
  struct Record {
    int64_t begin;
    int64_t end;
    int command;
  };
  struct Slot {
    std::vector<Record> writes;
    std::vector<Record> reads;  // reads since the last write of what they read
  };
  // Checks that records are ranges with bytes of earlier commands, in the order of those.
  void Validate() const;

  std::vector<Slot> slots_;
  int commands_ = 0;
  int64_t records_ = 0;  // in all slots
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_DEPENDENCIES_H_
