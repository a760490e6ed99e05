// Whose a block of memory was before it was given back, so that nobody gets another's bytes.
#ifndef KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_
#define KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_

#include <cstddef>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/synchronization/mutex.h"

namespace kiln::buffers {

// Thread-safe. Devices keep freed blocks for the next buffer of their size, so that whoever runs
// the same again and again gets his own blocks back.
class BlockOwners {
 public:
  // At most so many blocks are remembered; all are forgotten then, and count as others'.
  explicit BlockOwners(size_t most_blocks = 1 << 16) : most_(most_blocks) {}

  // The block is not `owner`'s any more. Null: nobody's in particular.
  void GivenBack(const void* block, const void* owner) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    if (owners_.size() >= most_) owners_.clear();
    owners_[block] = owner;
  }
  // The block is `owner`'s, who is not null, from now on. True: it was his before, and what is in
  // it need not be cleared.
  bool Take(const void* block, const void* owner) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    const auto found = owners_.find(block);
    if (found == owners_.end()) return false;
    const bool was_his = found->second == owner;
    owners_.erase(found);
    return was_his;
  }

 private:
  const size_t most_;
  absl::Mutex mutex_;
  absl::flat_hash_map<const void*, const void*> owners_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_BLOCK_OWNERS_H_
