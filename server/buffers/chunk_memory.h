// Memory for uploaded bytes, that one upload leaves to the next.
#ifndef KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_
#define KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_

#include <cstddef>
#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace kiln::buffers {

// The largest piece of memory: a huge page of x86-64's, which the system gives and clears in one
// step where it has such pages. Half of what it takes to receive a gigabyte was to have it page by
// page.
inline constexpr size_t kBlockBytes = 2 << 20;

// A piece of memory of its own; moves.
class ChunkMemory {
 public:
  ChunkMemory() = default;
  // At most kBlockBytes; whole blocks stand at a multiple of their size. Its contents are
  // undefined, and from 64 KiB on the system has given it already.
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

// Keeps memory for the next ones: the first touch of a fresh megabyte takes the kernel longer than
// filling it takes us. Thread-safe.
class ChunkRecycler {
 public:
  // At most this many bytes wait here; beyond them those go that have waited longest.
  explicit ChunkRecycler(size_t most_bytes) : most_(most_bytes) {}

  // Memory of exactly this size, which has waited here if some has.
  ChunkMemory Take(size_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // What is smaller than 64 KiB is not kept.
  void Give(ChunkMemory memory) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back to the system what is beyond `most_bytes`.
  void DropBeyond(size_t most_bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Likewise what nobody has needed since the last call of this.
  void DropUnused() ABSL_LOCKS_EXCLUDED(mutex_);
  size_t bytes() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // The oldest, until at most so many bytes wait. For the caller to free without the lock.
  std::deque<ChunkMemory> TakeBeyond(size_t most_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t most_;
  mutable absl::Mutex mutex_;
  size_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t fewest_ ABSL_GUARDED_BY(mutex_) = 0;                // bytes that waited, since DropUnused
  std::deque<ChunkMemory> waiting_ ABSL_GUARDED_BY(mutex_);  // by age
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_CHUNK_MEMORY_H_
