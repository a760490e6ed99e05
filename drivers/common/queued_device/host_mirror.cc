#include "drivers/common/queued_device/host_mirror.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <utility>
#include <variant>

#include "drivers/interface/target.h"
#include "proto/check/check.h"

namespace kiln::drivers {
namespace {

// Disjoint ranges of one slot, packed one after another in its mirror.
class Ranges {
 public:
  void Add(const SlotRange& range) {
    int64_t begin = range.offset;
    int64_t end = range.offset + range.bytes;
    auto next = ends_.upper_bound(begin);
    if (next != ends_.begin() && std::prev(next)->second >= begin) --next;
    while (next != ends_.end() && next->first <= end) {
      begin = std::min(begin, next->first);
      end = std::max(end, next->second);
      next = ends_.erase(next);
    }
    ends_[begin] = end;
  }

  // Maps the begin of each range to its offset in the mirror. Sets `bytes` to the total.
  std::map<int64_t, int64_t> Offsets(int64_t* bytes) const {
    std::map<int64_t, int64_t> offsets;
    *bytes = 0;
    for (const auto& [begin, end] : ends_) {
      offsets[begin] = *bytes;
      *bytes += (end - begin + kBufferAlignmentMin - 1) / kBufferAlignmentMin * kBufferAlignmentMin;
    }
    return offsets;
  }

 private:
  std::map<int64_t, int64_t> ends_;  // by begin
};

}  // namespace

HostMirror::HostMirror(CommandList* list) {
  if (list->host_slots.empty()) return;
  std::map<int, Ranges> ranges;
  for (const int slot : list->host_slots) ranges[slot] = {};
  std::vector<SlotRange*> places;  // of copies_
  size_t part = 0;
  for (size_t i = 0; i < list->commands.size(); ++i) {
    if (auto* copy = std::get_if<CopyCommand>(&list->commands[i]); copy != nullptr) {
      for (SlotRange* range : {&copy->source, &copy->destination}) {
        const auto slot = ranges.find(range->slot);
        if (slot == ranges.end() || range->bytes == 0) continue;
        slot->second.Add(*range);
        copies_.push_back({part, i, range == &copy->source, *range});
        places.push_back(range);
      }
    } else if (std::holds_alternative<SignalCommand>(list->commands[i]) ||
               std::holds_alternative<WaitCommand>(list->commands[i])) {
      ++part;
    }
  }
  slot_offsets_.resize(list->num_slots, 0);
  int64_t bytes = 0;
  for (const auto& [slot, used] : ranges) {
    int64_t slot_bytes = 0;
    const auto offsets = used.Offsets(&slot_bytes);
    slot_offsets_[slot] = bytes;
    bytes += slot_bytes;
    for (size_t i = 0; i < places.size(); ++i) {
      Copied& copied = copies_[i];
      if (copied.host.slot != slot) continue;
      const auto after = offsets.upper_bound(copied.host.offset);
      KILN_CHECK(after != offsets.begin()) << "no range of slot " << slot << " has the copy";
      const auto begin = std::prev(after);
      copied.offset = begin->second + copied.host.offset - begin->first;
      places[i]->offset = copied.offset;
    }
  }
  bytes_ = static_cast<size_t>(std::max(bytes, kBufferAlignmentMin));
  // As much work as building it.
  KILN_VALIDATE(*this, 1);
}

void HostMirror::Validate() const {
  KILN_CHECK_GT(bytes_, 0U);
  for (const int64_t offset : slot_offsets_) KILN_CHECK_EQ(offset % kBufferAlignmentMin, 0);
  for (size_t i = 0; i < copies_.size(); ++i) {
    const Copied& copied = copies_[i];
    KILN_CHECK(copied.host.slot >= 0) << "copy " << i;
    KILN_CHECK_LT(copied.host.slot, slot_offsets_.size());
    KILN_CHECK_GT(copied.host.bytes, 0);
    KILN_CHECK_GE(copied.offset, 0);
    if (i == 0) continue;
    // A copy between two host slots is two of these.
    KILN_CHECK_LE(copies_[i - 1].part, copied.part);
    KILN_CHECK_LE(copies_[i - 1].command, copied.command);
  }
}

void HostMirror::Place(char* memory) {
  KILN_CHECK(memory != nullptr);
  KILN_CHECK(memory_ == nullptr) << "placed twice";
  memory_ = memory;
}

absl::Span<const HostMirror::Copied> HostMirror::OfPart(size_t part) const {
  const auto begin = std::partition_point(copies_.begin(), copies_.end(),
                                          [&](const Copied& copied) { return copied.part < part; });
  const auto end = std::partition_point(begin, copies_.end(),
                                        [&](const Copied& copied) { return copied.part == part; });
  return absl::MakeConstSpan(copies_).subspan(begin - copies_.begin(), end - begin);
}

absl::Status HostMirror::Before(size_t part, const Run& run, Await await) const {
  return Copy(part, /*is_read=*/true, run, await);
}

absl::Status HostMirror::After(size_t part, const Run& run, Await await) const {
  return Copy(part, /*is_read=*/false, run, await);
}

absl::Status HostMirror::Copy(size_t part, bool is_read, const Run& run, Await await) const {
  bool awaited = false;
  for (const Copied& copied : OfPart(part)) {
    if (copied.is_read != is_read) continue;
    if (absl::Status status = awaited ? absl::OkStatus() : await(); !status.ok()) return status;
    awaited = true;
    KILN_CHECK(memory_ != nullptr);
    KILN_CHECK_LT(copied.host.slot, run.buffers.size());
    // It has memory, so these sums do not overflow.
    KILN_CHECK_LE(slot_offsets_[copied.host.slot] + copied.offset + copied.host.bytes, bytes_);
    KILN_CHECK_LE(copied.host.offset + copied.host.bytes, run.buffers[copied.host.slot]->bytes());
    const SteadyTime start = run.now();
    char* const host =
        static_cast<char*>(run.buffers[copied.host.slot]->host_pointer()) + copied.host.offset;
    char* const own = slot(copied.host.slot) + copied.offset;
    std::memcpy(is_read ? own : host, is_read ? host : own, static_cast<size_t>(copied.host.bytes));
    if (!run.command_seconds->empty())
      (*run.command_seconds)[copied.command] += Seconds(start, run.now());
  }
  return absl::OkStatus();
}

}  // namespace kiln::drivers
