#include "compiler/shard/place.h"

#include <algorithm>

#include "proto/check/check.h"

namespace kiln::shard {
namespace {

int64_t Aligned(int64_t bytes) {
  return (bytes + kPublishedAlignment - 1) / kPublishedAlignment * kPublishedAlignment;
}

// Returns whether both are live at once in one device's memory.
bool LiveTogether(const Buffer& a, const Buffer& b) {
  return a.device == b.device && a.first <= b.last && b.first <= a.last;
}

// Returns the lowest offset that no live buffer of `placed`, which is sorted by offset, occupies.
int64_t LowestGap(const Buffer& buffer, const std::vector<const Buffer*>& placed) {
  int64_t offset = 0;
  for (const Buffer* other : placed) {
    if (!LiveTogether(buffer, *other)) continue;
    if (offset + buffer.bytes <= other->offset) break;
    offset = std::max(offset, Aligned(other->offset + other->bytes));
  }
  return offset;
}

// Empty buffers get an offset of their own, too.
int64_t EndOf(const Buffer& buffer) {
  return Aligned(buffer.offset + std::max<int64_t>(buffer.bytes, 1));
}

// The buffers of a kind, after they were placed.
struct Placed {
  const std::vector<const Buffer*>& buffers;  // by offset

  // Checks that offsets are aligned, and that no two buffers that are live at once overlap.
  // Requires: no end overflows.
  void Validate() const {
    for (size_t i = 0; i < buffers.size(); ++i) {
      KILN_CHECK_EQ(buffers[i]->offset % kPublishedAlignment, 0) << "buffer " << i;
      KILN_CHECK_GE(buffers[i]->offset, 0) << "buffer " << i;
      for (size_t j = 0; j < i; ++j) {
        KILN_CHECK_LE(buffers[j]->offset, buffers[i]->offset);
        KILN_CHECK(!LiveTogether(*buffers[i], *buffers[j]) ||
                   EndOf(*buffers[j]) <= buffers[i]->offset || buffers[i]->bytes == 0 ||
                   buffers[j]->bytes == 0)
            << "buffers " << j << " and " << i << " overlap";
      }
    }
  }
};

// Returns whether the buffers' sizes can be added up: a user's graph may have larger tensors than
// any memory.
bool CanAddUp(const std::vector<Buffer*>& buffers) {
  int64_t sum = 0;
  return std::all_of(buffers.begin(), buffers.end(), [&sum](const Buffer* buffer) {
    return !__builtin_add_overflow(sum, buffer->bytes, &sum) &&
           !__builtin_add_overflow(sum, 2 * kPublishedAlignment, &sum);
  });
}

}  // namespace

int64_t OwnBytes(const Program& program, int64_t device) {
  int64_t bytes = 0;
  for (const Buffer& buffer : program.buffers) {
    if (buffer.kind != Buffer::Kind::kOwn || !IsOn(buffer.device, device)) continue;
    bytes = std::max(bytes, EndOf(buffer));
  }
  return bytes;
}

int64_t PlaceBuffers(Buffer::Kind kind, std::vector<Buffer>* buffers) {
  std::vector<Buffer*> order;
  for (Buffer& buffer : *buffers) {
    if (buffer.kind == kind) order.push_back(&buffer);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Buffer* a, const Buffer* b) { return a->bytes > b->bytes; });
  std::vector<const Buffer*> placed;  // by offset
  int64_t end = 0;
  for (Buffer* buffer : order) {
    buffer->offset = LowestGap(*buffer, placed);
    end = std::max(end, EndOf(*buffer));
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), buffer,
                         [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    placed.insert(at, buffer);
  }
  KILN_CHECK_EQ(placed.size(), order.size());
  if (CanAddUp(order)) KILN_VALIDATE(Placed{placed}, placed.size() * placed.size());
  return end;
}

}  // namespace kiln::shard
