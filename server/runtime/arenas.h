// Memory for the intermediate results of a device's runs.
//
// A device's lists run one after another, so that programs which are submitted as one list share
// one arena. A program that is submitted in slices keeps its arena from its first slice to its
// last, since others' lists come in between: there are as many arenas as programs are under way in
// slices at once, and one more for what comes in between; what fits into the device's memory bounds
// them.
//
// Where another arena does not fit, a run waits for one: whoever holds one has all that it needs,
// so that it goes on to its end and gives it back (fairness::Work::Handed::kNoRoom). Before a run
// is queued an arena that is large enough exists, so that there is something to wait for.
#ifndef KILN_SERVER_RUNTIME_ARENAS_H_
#define KILN_SERVER_RUNTIME_ARENAS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/buffers/pool.h"

namespace kiln::runtime {

// One of them. Shared by the runs that are queued or in flight and use it.
class Arena {
 public:
  // `life`: the pool's before the buffer was allocated.
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

  // One of at least `bytes`, held or not: as long as it is kept, Take has one to give, now or after
  // a Release. It grows to what the largest program needs. RESOURCE_EXHAUSTED, or the device's
  // error.
  absl::StatusOr<std::shared_ptr<Arena>> Reserve(int64_t bytes)
      ABSL_LOCKS_EXCLUDED(making_mutex_, mutex_);
  // For what is submitted now: one of at least `bytes` that nobody holds. With `hold` nobody else
  // gets it until Release. Null: all that are large enough are held, and another one does not fit.
  absl::StatusOr<std::shared_ptr<Arena>> Take(int64_t bytes, bool hold)
      ABSL_LOCKS_EXCLUDED(making_mutex_, mutex_);
  // All that its holder wants to submit has been submitted.
  void Release(Arena& arena) ABSL_LOCKS_EXCLUDED(mutex_);
  // Frees those that no run uses. May be called while one is being made.
  void DropIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // How many there are.
  int count() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using List = std::vector<std::shared_ptr<Arena>>;

  // The smallest of at least `bytes` that is not held, with `or_held` the largest; or null.
  std::shared_ptr<Arena> FindLocked(int64_t bytes, bool or_held) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes out those that no run uses and that are lost or, but for the largest one, too many. They
  // are destroyed by the caller, without the lock.
  List TakeSurplus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Arena>> Make(int64_t bytes)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(making_mutex_) ABSL_LOCKS_EXCLUDED(mutex_);

  const std::shared_ptr<buffers::Pool> pool_;
  // Held while an arena is made, before mutex_: whoever comes meanwhile wants the same one.
  absl::Mutex making_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  mutable absl::Mutex mutex_;
  List arenas_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_ARENAS_H_
