#include "server/buffers/chunk_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <new>

#include "proto/check/check.h"

namespace kiln::buffers {
namespace {

constexpr size_t kSmall = 64 << 10;
constexpr uintptr_t kPage = 4096;

#ifndef MADV_POPULATE_WRITE
constexpr int MADV_POPULATE_WRITE = 23;  // Linux 5.14
#endif

// Has the system supply whole pages at once, because touching them one after another is slower. On
// an older kernel this fails, and pages are supplied on first access.
void Populate(char* data, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(data);
  const uintptr_t first = (start + kPage - 1) / kPage * kPage;
  const uintptr_t end = (start + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_WRITE);
}

// Null: out of memory.
char* MapBlock() {
  // Maps twice the size and keeps an aligned block of it.
  void* const mapped = mmap(nullptr, 2 * kBlockBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  char* const start = static_cast<char*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(start) % kBlockBytes;
  char* const block = start + before;
  if (before > 0) munmap(start, before);
  munmap(block + kBlockBytes, kBlockBytes - before);
  madvise(block, kBlockBytes, MADV_HUGEPAGE);
  return block;
}

}  // namespace

ChunkMemory::ChunkMemory(size_t bytes) : size_(bytes) {
  KILN_CHECK_LE(bytes, kBlockBytes);
  if (bytes == kBlockBytes) {
    data_ = MapBlock();
    if (data_ == nullptr) std::terminate();  // as operator new does without a handler
  } else {
    data_ = new char[bytes];
  }
  if (bytes >= kSmall) Populate(data_, bytes);
}

ChunkMemory::~ChunkMemory() {
  if (size_ == kBlockBytes) {
    munmap(data_, size_);
  } else {
    delete[] data_;
  }
}

ChunkMemory ChunkRecycler::Take(size_t bytes) {
  if (bytes >= kSmall) {
    absl::MutexLock lock(&mutex_);
    const auto found =
        std::find_if(waiting_.rbegin(), waiting_.rend(),
                     [&](const ChunkMemory& memory) { return memory.size() == bytes; });
    if (found != waiting_.rend()) {
      ChunkMemory memory = std::move(*found);
      waiting_.erase(std::next(found).base());
      bytes_ -= bytes;
      fewest_ = std::min(fewest_, bytes_);
      KILN_VALIDATE(*this, waiting_.size());
      return memory;
    }
  }
  return ChunkMemory(bytes);
}

void ChunkRecycler::Give(ChunkMemory memory) {
  if (memory.size() < kSmall) return;
  std::deque<ChunkMemory> dropped;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  bytes_ += memory.size();
  waiting_.push_back(std::move(memory));
  dropped = TakeBeyond(bytes_max_);
  KILN_VALIDATE(*this, waiting_.size());
}

void ChunkRecycler::DropBeyond(size_t bytes_max) {
  std::deque<ChunkMemory> dropped;
  absl::MutexLock lock(&mutex_);
  dropped = TakeBeyond(bytes_max);
  KILN_VALIDATE(*this, waiting_.size());
}

void ChunkRecycler::DropUnused() {
  std::deque<ChunkMemory> dropped;
  absl::MutexLock lock(&mutex_);
  dropped = TakeBeyond(bytes_ - fewest_);
  fewest_ = bytes_;
  KILN_VALIDATE(*this, waiting_.size());
}

std::deque<ChunkMemory> ChunkRecycler::TakeBeyond(size_t bytes_max) {
  std::deque<ChunkMemory> taken;
  while (bytes_ > bytes_max) {
    KILN_CHECK(!waiting_.empty());
    bytes_ -= waiting_.front().size();
    taken.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  fewest_ = std::min(fewest_, bytes_);
  return taken;
}

void ChunkRecycler::Validate() const {
  size_t bytes = 0;
  for (const ChunkMemory& memory : waiting_) {
    KILN_CHECK_NE(memory.data(), nullptr);
    KILN_CHECK_GE(memory.size(), kSmall);
    bytes += memory.size();
  }
  KILN_CHECK_EQ(bytes, bytes_);
  KILN_CHECK_LE(bytes_, bytes_max_);
  KILN_CHECK_LE(fewest_, bytes_);
}

size_t ChunkRecycler::bytes() const {
  absl::MutexLock lock(&mutex_);
  return bytes_;
}

}  // namespace kiln::buffers
