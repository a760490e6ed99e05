// Keeps freed memory by size class for the next buffer of that size, within a limit on all of a
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

// Thread-safe.
class CachingAllocator {
 public:
  struct Options {
    std::string device;        // for messages
    int64_t memory_bytes = 0;  // live and cached blocks together stay within this
    int64_t cache_bytes = 0;   // cached blocks stay within this; the rest is given back at once
    // Both may take long (a device's driver may wait for what runs), and are called by several
    // threads at once.
    std::function<void*(int64_t bytes)> allocate;  // null if there is no memory
    std::function<void(void* memory, int64_t bytes)> release;
  };
  explicit CachingAllocator(Options options);
  // All blocks must have been freed.
  ~CachingAllocator();

  // A block of SizeClass(bytes). RESOURCE_EXHAUSTED says how much was asked for and how much is
  // left. `is_new`: it comes from `allocate`, and not out of the cache.
  absl::StatusOr<void*> Allocate(int64_t bytes, bool* is_new = nullptr);
  // `bytes` as given to Allocate.
  void Free(void* memory, int64_t bytes);

  int64_t cached_bytes() const;
  // How many threads wait in Allocate for memory that is being released.
  int waiting() const;

  // At least `bytes`, and at most an eighth more beyond 512: eight classes for each power of two,
  // the smallest 64.
  static int64_t SizeClass(int64_t bytes);

 private:
  struct Block {
    void* memory;
    int64_t size;
  };
  absl::Status Exhausted(int64_t bytes) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void* TakeCached(int64_t size) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes blocks out of the cache, largest first, until at most `bytes` are in it. They are to be
  // released.
  std::vector<Block> Trim(int64_t bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Release(absl::Span<const Block> blocks) ABSL_LOCKS_EXCLUDED(mutex_);
  bool IsWithinLimit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return live_bytes_ + cached_bytes_ + leaving_bytes_ <= options_.memory_bytes;
  }
  bool NothingLeaves() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return leaving_bytes_ == 0; }
  // Blocks until `condition` holds.
  void AwaitReleases(const absl::Condition& condition) ABSL_LOCKS_EXCLUDED(mutex_);

  const Options options_;
  mutable absl::Mutex mutex_;
  int64_t live_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t cached_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t leaving_bytes_ ABSL_GUARDED_BY(mutex_) = 0;  // being released
  int waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::vector<void*>> cache_
      ABSL_GUARDED_BY(mutex_);  // by size class; no empty lists
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_CACHING_ALLOCATOR_H_
