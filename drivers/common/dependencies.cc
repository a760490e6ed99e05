#include "drivers/common/dependencies.h"

#include <algorithm>
#include <vector>

#include "proto/check/check.h"

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
    KILN_CHECK(range.slot >= 0 && static_cast<size_t>(range.slot) < slots_.size()) << range.slot;
    KILN_CHECK(range.offset >= 0 && range.bytes >= 0) << range.offset << " + " << range.bytes;
    const Slot& slot = slots_[range.slot];
    overlapping(slot.writes, range);
    if (access != Access::kRead) overlapping(slot.reads, range);
  }
  for (const auto& [range, access] : accesses) {
    if (range.bytes == 0) continue;
    Slot& slot = slots_[range.slot];
    const Record record = {range.offset, range.offset + range.bytes, commands_};
    ++records_;
    if (access == Access::kRead) {
      slot.reads.push_back(record);
      continue;
    }
    // Later commands only need to wait for this command, which has waited for the old ones.
    const auto covered = [&record](const Record& old) {
      return old.command != record.command && record.begin <= old.begin && old.end <= record.end;
    };
    records_ -= static_cast<int64_t>(std::erase_if(slot.writes, covered));
    records_ -= static_cast<int64_t>(std::erase_if(slot.reads, covered));
    slot.writes.push_back(record);
  }
  ++commands_;
  std::sort(before.begin(), before.end());
  before.erase(std::unique(before.begin(), before.end()), before.end());
  KILN_CHECK(before.empty() || (before.front() >= 0 && before.back() < commands_ - 1))
      << "command " << commands_ - 1 << " waits for itself or for a later one";
  KILN_VALIDATE(*this, records_);
  return before;
}

void Dependencies::Validate() const {
  int64_t records = 0;
  for (const Slot& slot : slots_) {
    for (const std::vector<Record>* list : {&slot.writes, &slot.reads}) {
      records += static_cast<int64_t>(list->size());
      for (const Record& record : *list) {
        KILN_CHECK_GE(record.begin, 0);
        KILN_CHECK_LT(record.begin, record.end);
        KILN_CHECK(record.command >= 0 && record.command < commands_) << record.command;
      }
      KILN_CHECK(std::is_sorted(list->begin(), list->end(), [](const Record& a, const Record& b) {
        return a.command < b.command;
      }));
    }
  }
  KILN_CHECK_EQ(records, records_);
}

}  // namespace kiln::drivers
