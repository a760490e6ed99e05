// Limits what one user has under way: work beyond the limit waits instead of failing.
#ifndef KILN_SERVER_QUOTA_GATE_H_
#define KILN_SERVER_QUOTA_GATE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/check/check.h"
#include "server/quota/meter.h"

namespace kiln::quota {

// At the limit only the oldest pass may continue, however much it still brings. So some pass always
// finishes, and all get through in the end. Thread-safe.
class Gate {
 public:
  // A transfer under way. The destructor gives back the amount that it has brought. Used by one
  // thread at a time.
  class Pass {
   public:
    ~Pass() { gate_.Leave(number_, brought_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

    void Add(int64_t amount) {
      KILN_CHECK_GE(amount, 0);
      brought_ += amount;
      gate_.meter_.ForceTake(amount);
    }
    // Returns true if it may bring more. Otherwise `go_on` is called once it may, by any thread,
    // without locks, possibly before this returns; or never, if this Pass is destroyed first.
    bool MayGoOn(std::function<void()> go_on) { return gate_.MayGoOn(number_, std::move(go_on)); }

   private:
    friend class Gate;
    Pass(Gate& gate, int64_t number) : gate_(gate), number_(number) {}

    Gate& gate_;
    const int64_t number_;
    int64_t brought_ = 0;
  };

  explicit Gate(Scope scope) : meter_(std::move(scope)) {}
  // Requires: all passes are destroyed.
  ~Gate();

  // The gate must outlive the result.
  std::unique_ptr<Pass> Enter() ABSL_LOCKS_EXCLUDED(mutex_);
  void SetLimit(int64_t limit) ABSL_LOCKS_EXCLUDED(mutex_);
  const Meter& meter() const { return meter_; }

 private:
  using GoOn = std::function<void()>;

  bool MayGoOn(int64_t number, GoOn go_on) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave(int64_t number, int64_t amount) ABSL_LOCKS_EXCLUDED(mutex_);
  // Requires: the pass is here.
  bool IsOpenFor(int64_t number) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    KILN_DCHECK(entered_.contains(number));
    return !meter_.IsFull() || entered_.begin()->first == number;
  }
  // Returns the callbacks of the passes that may continue now.
  std::vector<GoOn> TakeReady() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Meter meter_;
  absl::Mutex mutex_;
  int64_t last_number_ ABSL_GUARDED_BY(mutex_) = 0;
  // By age; with the callbacks of those that wait.
  std::map<int64_t, GoOn> entered_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_GATE_H_
