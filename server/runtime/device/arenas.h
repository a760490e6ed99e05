// Memory for the intermediate results of a device's runs.
//
// A device's lists run one after another, so all programs that are submitted as one list share one
// arena. A program that is submitted in slices keeps its arena from its first slice to its last,
// since other lists run in between. There is one arena for each program that is partly submitted,
// and one for the lists in between. Their number is bounded by what fits in the device's memory.
//
// If another arena does not fit, a run waits for one (fairness::Work::Handed::kNoRoom). This cannot
// deadlock: the holder of an arena has all that it needs to finish and release it. Before a run is
// queued, a large enough arena exists, so there is always one to wait for.
#ifndef KILN_SERVER_RUNTIME_DEVICE_ARENAS_H_
#define KILN_SERVER_RUNTIME_DEVICE_ARENAS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/buffers/pool.h"

namespace kiln::runtime {

// Memory for the intermediate results of one list at a time. Shared by the queued and running runs
// that use it.
class Arena {
 public:
  // `life`: the pool's life before the buffer was allocated.
  Arena(std::shared_ptr<buffers::Pool> pool, std::unique_ptr<drivers::Buffer> buffer, int64_t life)
      : pool_(std::move(pool)), buffer_(std::move(buffer)), life_(life) {}
  ~Arena() { pool_->Free(std::move(buffer_)); }
  drivers::Buffer* buffer() const { return buffer_.get(); }
  int64_t bytes() const { return buffer_->bytes(); }
  bool lost() const { return life_ != pool_->life(); }

 private:
  friend class Arenas;
  const std::shared_ptr<buffers::Pool> pool_;
  std::unique_ptr<drivers::Buffer> buffer_;
  const int64_t life_;
  bool held_ = false;  // guarded by the mutex of Arenas
};

// Thread-safe.
class Arenas {
 public:
  explicit Arenas(std::shared_ptr<buffers::Pool> pool) : pool_(std::move(pool)) {}

  // Returns an arena of at least `bytes`, held or not. As long as the caller keeps it, Take can
  // return an arena, now or after a Release. Arenas grow to the size that the largest program
  // needs. Errors: RESOURCE_EXHAUSTED, or the device's error.
  absl::StatusOr<std::shared_ptr<Arena>> Reserve(int64_t bytes)
      ABSL_LOCKS_EXCLUDED(making_mutex_, mutex_);
  // Returns an arena of at least `bytes` that is not held, for a list that is submitted now. With
  // `hold`, no other caller gets it until Release. Returns null if all large enough arenas are held
  // and another one does not fit.
  absl::StatusOr<std::shared_ptr<Arena>> Take(int64_t bytes, bool hold)
      ABSL_LOCKS_EXCLUDED(making_mutex_, mutex_);
  // Requires: it is held, and the holder has submitted everything that uses the arena.
  void Release(Arena& arena) ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees the arenas that no run uses. May be called while an arena is being made.
  void DropIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  int count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using List = std::vector<std::shared_ptr<Arena>>;

  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns the smallest arena of at least `bytes` that is not held; with `or_held`, the largest
  // one, held or not. Null if there is none.
  std::shared_ptr<Arena> FindLocked(int64_t bytes, bool or_held) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Removes the arenas that no run uses and that are lost or are not the largest unused one. The
  // caller destroys them without the lock.
  List TakeSurplus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Arena>> Make(int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<buffers::Pool> pool_;
  // Held while an arena is made, before mutex_: a concurrent caller wants the same arena.
  absl::Mutex making_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  List arenas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_DEVICE_ARENAS_H_
