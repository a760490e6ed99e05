// Caches freed memory by size class for the next buffer of that size, within a limit on all of a
// device's memory.
#ifndef KILN_DRIVERS_COMMON_CACHING_ALLOCATOR_H_
#define KILN_DRIVERS_COMMON_CACHING_ALLOCATOR_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"

namespace kiln::drivers {

// Thread-safe. Each block is in one of three states: live (the caller's), cached, or leaving (being
// released); the byte counters are the sums of each.
class CachingAllocator {
 public:
  struct Options {
    std::string device;        // for messages
    int64_t memory_bytes = 0;  // live and cached blocks together stay within this
    int64_t cache_bytes = 0;   // cached blocks stay within this; excess is released at once
    // Both may take long (the driver may wait for running work), and are called by several threads
    // at once.
    std::function<void*(int64_t bytes)> allocate;  // null: out of memory
    std::function<void(void* memory, int64_t bytes)> release;
  };
  explicit CachingAllocator(Options options);
  // Requires: all blocks have been freed.
  ~CachingAllocator();

  // Returns a block of SizeClass(bytes). RESOURCE_EXHAUSTED says how much was requested and how
  // much is left. Sets `is_new` to whether the block comes from `allocate`, not from the cache.
  absl::StatusOr<void*> Allocate(int64_t bytes, bool* is_new = nullptr);
  // Requires: `memory` is a live block; `bytes` is what was given to Allocate.
  void Free(void* memory, int64_t bytes);

  int64_t cached_bytes() const;
  // The number of threads in Allocate that wait for memory being released.
  int waiting() const;

  // Rounds up by at most an eighth above 512 bytes: eight classes for each power of two. The
  // smallest class is 64.
  static int64_t SizeClass(int64_t bytes);

 private:
  struct Block {
    void* memory;
    int64_t size;
  };
  // Checks that the counters are those of the blocks and within their limits, and that no block is
  // cached twice.
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Exhausted(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void* TakeCached(int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes blocks from the cache, largest first, until it holds at most `bytes`. The caller must
  // release them.
  std::vector<Block> Trim(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(absl::Span<const Block> blocks) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsWithinLimit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return live_bytes_ + cached_bytes_ + leaving_bytes_ <= options_.memory_bytes;
  }
  bool NothingLeaves() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return leaving_bytes_ == 0; }
  void AwaitReleases(const absl::Condition& condition) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  int64_t live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cached_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cached_blocks_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t leaving_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // being released
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::vector<void*>> cache_
      ABSL_GUARDED_BY(mutex_);  // by size class; no empty lists
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_CACHING_ALLOCATOR_H_
