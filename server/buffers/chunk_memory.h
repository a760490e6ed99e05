// Memory for uploaded bytes, reused by later uploads.
#ifndef KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_
#define KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::buffers {

// The largest piece of memory: a huge page of x86-64, which the system supplies and clears in one
// step if it has any. Receiving a gigabyte took twice as long when memory was supplied page by
// page.
inline constexpr size_t kBlockBytes = 2 << 20;

// Owns a piece of memory; movable.
class ChunkMemory {
 public:
  ChunkMemory() = default;
  // Requires: `bytes` <= kBlockBytes. Whole blocks are aligned to their size. The content is
  // undefined; from 64 KiB on, the pages are already supplied.
  explicit ChunkMemory(size_t bytes);
  ~ChunkMemory();
  ChunkMemory(ChunkMemory&& other) noexcept { *this = std::move(other); }
  ChunkMemory& operator=(ChunkMemory&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  char* data() const { return data_; }
  size_t size() const { return size_; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
};

// Caches memory for reuse: the kernel takes longer to supply a fresh megabyte than it takes to fill
// it. Thread-safe.
class ChunkRecycler {
 public:
  // Caches at most `bytes_max`; beyond that it releases the oldest.
  explicit ChunkRecycler(size_t bytes_max) : bytes_max_(bytes_max) {}

  // Memory of exactly this size, from the cache if possible.
  ChunkMemory Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Releases memory smaller than 64 KiB instead of caching it.
  void Give(ChunkMemory memory) ABSL_LOCKS_EXCLUDED(mutex_);
  // Releases cached memory down to `bytes_max`.
  void DropBeyond(size_t bytes_max) ABSL_LOCKS_EXCLUDED(mutex_);
  // Releases the memory that was not needed since the last call of this.
  void DropUnused() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the oldest memory until at most `bytes_max` are cached. The caller frees it without
  // the lock.
  std::deque<ChunkMemory> TakeBeyond(size_t bytes_max) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t bytes_max_;
  mutable absl::Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t fewest_ ABSL_GUARDED_BY(mutex_) = 0;                // least bytes cached since DropUnused
  std::deque<ChunkMemory> waiting_ ABSL_GUARDED_BY(mutex_);  // by age
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_
