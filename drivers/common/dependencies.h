// Which commands of a list must wait for which others: what makes a graph of it.
#ifndef KILN_DRIVERS_COMMON_DEPENDENCIES_H_
#define KILN_DRIVERS_COMMON_DEPENDENCIES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "drivers/interface/command_list.h"
#include "drivers/interface/kernel_image.h"

namespace kiln::drivers {

struct RangeAccess {
  SlotRange range;
  Access access = Access::kReadWrite;
};

// Of each argument of a launch, as its image says; one that does not say may write all.
std::vector<RangeAccess> AccessesOf(const LaunchCommand& launch);

// Takes commands one after another. Different slots are taken for different memory.
class Dependencies {
 public:
  explicit Dependencies(int num_slots) : slots_(num_slots) {}

  // The numbers of those earlier commands, counted from 0, that must have ended before this one may
  // begin: ascending, without some of those that others among them wait for.
  std::vector<int> Add(absl::Span<const RangeAccess> accesses);

 private:
  struct Record {
    int64_t begin;
    int64_t end;
    int command;
  };
  struct Slot {
    std::vector<Record> writes;
    std::vector<Record> reads;  // since what they read was written
  };
  std::vector<Slot> slots_;
  int commands_ = 0;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_DEPENDENCIES_H_
