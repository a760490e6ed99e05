// Remembers the previous owner of a freed block of memory, so that no user gets another user's
// bytes.
#ifndef KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_
#define KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"

namespace kiln::buffers {

// Thread-safe. Devices cache freed blocks for the next buffer of the same size, so a user who
// repeats the same work gets their own blocks back.
class BlockOwners {
 public:
  // Remembers at most `blocks_max` blocks. Beyond that it forgets all, which then count as other
  // users' blocks.
  explicit BlockOwners(size_t blocks_max = 1 << 16) : blocks_max_(blocks_max) {}

  // The block no longer belongs to `owner`. Null: to no single user.
  void GivenBack(const void* block, const void* owner) ABSL_LOCKS_EXCLUDED(mutex_) {
    KILN_CHECK_NE(block, nullptr);
    absl::MutexLock lock(&mutex_);
    if (owners_.size() >= blocks_max_) owners_.clear();
    owners_[block] = owner;
    KILN_CHECK_LE(owners_.size(), blocks_max_);
  }
  // The block belongs to `owner` (not null) from now on. Returns true if it belonged to the same
  // owner before, so that its content need not be cleared.
  bool Take(const void* block, const void* owner) ABSL_LOCKS_EXCLUDED(mutex_) {
    // Null would match blocks of several users.
    KILN_CHECK_NE(owner, nullptr);
    absl::MutexLock lock(&mutex_);
    const auto found = owners_.find(block);
    if (found == owners_.end()) return false;
    const bool was_his = found->second == owner;
    owners_.erase(found);
    return was_his;
  }

 private:
  const size_t blocks_max_;
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, const void*> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_
