// Users' work on the host that no device's queue knows of: compilations and uploads.
#ifndef KILN_SERVER_FAIRNESS_HOST_WORK_H_
#define KILN_SERVER_FAIRNESS_HOST_WORK_H_

#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/fairness/dispatcher.h"

namespace kiln::fairness {

// Thread-safe.
class HostWork {
 public:
  explicit HostWork(std::function<absl::Time()> now) : now_(std::move(now)), last_(now_()) {}

  // Work that lasts as long as this object. Null: nothing.
  class Piece {
   public:
    explicit Piece(HostWork* work) : work_(work) {
      if (work_ != nullptr) work_->Add(1);
    }
    ~Piece() {
      if (work_ != nullptr) work_->Add(-1);
    }
    Piece(const Piece&) = delete;
    Piece& operator=(const Piece&) = delete;

   private:
    HostWork* const work_;
  };
  // Work that is over already.
  void Touch() ABSL_LOCKS_EXCLUDED(mutex_) { Add(0); }

  UsersWork users_work() const ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return {.is_there = pieces_ > 0, .last = last_};
  }

  // `observer` is called each time that work comes or ends, with the lock held: it returns quickly
  // and calls nothing of this object. Null: none is called once this has returned.
  void SetObserver(std::function<void()> observer) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    observer_ = std::move(observer);
  }

 private:
  void Add(int64_t pieces) ABSL_LOCKS_EXCLUDED(mutex_) {
    const absl::Time now = now_();
    absl::MutexLock lock(&mutex_);
    pieces_ += pieces;
    last_ = now;
    if (observer_) observer_();
  }

  const std::function<absl::Time()> now_;
  mutable absl::Mutex mutex_;
  int64_t pieces_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time last_ ABSL_GUARDED_BY(mutex_);  // when some last came or ended
  std::function<void()> observer_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::fairness

#endif  // KILN_SERVER_FAIRNESS_HOST_WORK_H_
