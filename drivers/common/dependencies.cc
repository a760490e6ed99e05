#include "drivers/common/dependencies.h"

#include <algorithm>

namespace kiln::drivers {

std::vector<int> Dependencies::Add(absl::Span<const RangeAccess> accesses) {
  std::vector<int> before;
  const auto overlapping = [&before](const std::vector<Record>& records, const SlotRange& range) {
    for (const Record& record : records) {
      if (record.begin < range.offset + range.bytes && range.offset < record.end)
        before.push_back(record.command);
    }
  };
  for (const auto& [range, access] : accesses) {
    const Slot& slot = slots_[range.slot];
    overlapping(slot.writes, range);
    if (access != Access::kRead) overlapping(slot.reads, range);
  }
  for (const auto& [range, access] : accesses) {
    if (range.bytes == 0) continue;
    Slot& slot = slots_[range.slot];
    const Record record = {range.offset, range.offset + range.bytes, commands_};
    if (access == Access::kRead) {
      slot.reads.push_back(record);
      continue;
    }
    // Later commands only need to wait for this command, which has waited for the old ones.
    const auto covered = [&record](const Record& old) {
      return old.command != record.command && record.begin <= old.begin && old.end <= record.end;
    };
    std::erase_if(slot.writes, covered);
    std::erase_if(slot.reads, covered);
    slot.writes.push_back(record);
  }
  ++commands_;
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  return before;
}

}  // namespace kiln::drivers
