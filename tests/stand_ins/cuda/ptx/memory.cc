#include "tests/stand_ins/cuda/ptx/memory.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace kiln::stand_ins::ptx {

GlobalMemory::GlobalMemory(std::vector<Region> regions) : regions_(std::move(regions)) {
  std::sort(regions_.begin(), regions_.end(),
            [](const Region& a, const Region& b) { return a.address < b.address; });
}

const Region* GlobalMemory::Find(uint64_t address) const {
  auto after =
      std::upper_bound(regions_.begin(), regions_.end(), address,
                       [](uint64_t value, const Region& region) { return value < region.address; });
  if (after == regions_.begin()) return nullptr;
  const Region& region = *--after;
  return address - region.address < region.bytes ? &region : nullptr;
}

std::string GlobalMemory::Describe(uint64_t address) const {
  auto after =
      std::upper_bound(regions_.begin(), regions_.end(), address,
                       [](uint64_t value, const Region& region) { return value < region.address; });
  if (after == regions_.begin()) return "below all allocations";
  const Region& region = *--after;
  const std::string which =
      absl::StrCat(" the allocation of ", region.bytes, " bytes at 0x", absl::Hex(region.address));
  const uint64_t offset = address - region.address;
  if (offset < region.bytes) return absl::StrCat("at byte ", offset, " of", which);
  return absl::StrCat(offset - region.bytes, " bytes past the end of", which);
}

void SharedMemory::Reset(int64_t bytes, int threads) {
  content_.assign(bytes, 0xff);  // NaNs: the content is undefined
  warp_epochs_.assign((threads + 31) / 32, 0);
  ++epoch_;  // invalidates the shadow's entries of earlier blocks
  shadow_.resize(threads > 1 ? bytes : 0);
}

std::string SharedMemory::Conflict(const Byte& byte, Use use, int64_t offset, int thread) const {
  const auto race = [&](absl::string_view how, int other) {
    return absl::StrCat("race on byte ", offset, " of shared memory: thread ", thread,
                        use == Use::kRead    ? " reads"
                        : use == Use::kWrite ? " writes"
                                             : " updates",
                        " what thread ", other, how, " since the last barrier");
  };
  if (byte.copying)
    return absl::StrCat("byte ", offset, " of shared memory is still being filled by cp.async");
  if (byte.epoch != epoch_) return "";
  const auto ordered = [&](int other, uint32_t other_epoch) {
    return other == thread ||
           (other / 32 == thread / 32 && other_epoch < warp_epochs_[thread / 32]);
  };
  const bool both_atomic = byte.atomic && use == Use::kAtomic;
  if (byte.writer != kNobody && !both_atomic && !ordered(byte.writer, byte.writer_warp_epoch))
    return race(" wrote", byte.writer);
  if (use == Use::kRead || byte.reader == kNobody) return "";
  const bool only_me = byte.reader == thread && !byte.many_readers && !byte.reader_warps;
  const bool warp_met = !byte.reader_warps && byte.reader / 32 == thread / 32 &&
                        byte.reader_warp_epoch < warp_epochs_[thread / 32];
  return only_me || warp_met ? "" : race(" read", byte.reader);
}

std::string SharedMemory::Note(Use use, int64_t offset, int64_t bytes, int thread) {
  if (shadow_.empty()) return "";
  const uint32_t warp_epoch = warp_epochs_[thread / 32];
  for (int64_t at = offset; at < offset + bytes; ++at) {
    Byte& byte = shadow_[at];
    const bool mine = byte.epoch == epoch_ && byte.reader == thread && use == Use::kRead &&
                      byte.writer == kNobody && !byte.copying;
    if (mine && byte.reader_warp_epoch == warp_epoch) continue;
    if (byte.epoch != epoch_ && !byte.copying) byte = Byte{.epoch = epoch_};
    if (std::string conflict = Conflict(byte, use, at, thread); !conflict.empty()) return conflict;
    if (use != Use::kRead) {
      byte.writer = thread;
      byte.writer_warp_epoch = warp_epoch;
      byte.atomic = use == Use::kAtomic;
      continue;
    }
    if (byte.reader != kNobody && byte.reader != thread) {
      (byte.reader / 32 == thread / 32 ? byte.many_readers : byte.reader_warps) = true;
    }
    byte.reader = thread;
    byte.reader_warp_epoch = warp_epoch;
  }
  return "";
}

std::string SharedMemory::BeginCopy(int64_t offset, int64_t bytes, int thread) {
  std::string conflict = Note(Use::kWrite, offset, bytes, thread);
  if (shadow_.empty() || !conflict.empty()) return conflict;
  for (int64_t at = offset; at < offset + bytes; ++at) shadow_[at].copying = true;
  return "";
}

std::string SharedMemory::EndCopy(int64_t offset, int64_t bytes, int thread) {
  if (shadow_.empty()) return "";
  for (int64_t at = offset; at < offset + bytes; ++at) shadow_[at].copying = false;
  return Note(Use::kWrite, offset, bytes, thread);
}

}  // namespace kiln::stand_ins::ptx
