// Accounts of device memory.
#ifndef KILN_SERVER_BUFFERS_ACCOUNT_H_
#define KILN_SERVER_BUFFERS_ACCOUNT_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "server/quota/meter.h"

namespace kiln::buffers {

// Counts the values of one session and, through `parent`, those of its user on the same device, and
// through the parent's parent, those of the user on all devices. Thread-safe. Shared, since values
// in flight outlive their session.
class Account : public std::enable_shared_from_this<Account> {
 public:
  // Memory for intermediate results, counted during this object's lifetime.
  class Arena {
   public:
    Arena(std::shared_ptr<Account> account, int64_t bytes)
        : account_(std::move(account)), bytes_(bytes) {}
    ~Arena() { account_->RemoveArena(bytes_); }
    Arena(const Arena&) = delete;
    Arena& operator=(const Arena&) = delete;

   private:
    const std::shared_ptr<Account> account_;
    const int64_t bytes_;
  };

  // The scopes describe the limits in refusals; without them there is no limit at this level.
  explicit Account(std::shared_ptr<Account> parent = nullptr, quota::Scope bytes = {},
                   quota::Scope buffers = {})
      : parent_(std::move(parent)), bytes_(std::move(bytes)), buffers_(std::move(buffers)) {}
  // Requires: all values have been removed. (Arenas keep it alive, and so do accounts with this
  // parent.)
  ~Account();

  // 0: no limit.
  void SetLimits(int64_t bytes, int64_t buffers) {
    bytes_.SetLimit(bytes);
    buffers_.SetLimit(buffers);
  }
  // While it is set, nothing is refused here or in a parent, so that users keep what they already
  // have.
  void SetExempt(bool exempt) { exempt_.store(exempt, std::memory_order_relaxed); }
  // Counts another value. Returns quota::Refusal, and counts nothing, if a limit here or in a
  // parent would be exceeded.
  absl::Status Add(int64_t bytes);
  // Requires: a value of as many bytes was added, and not removed.
  void Remove(int64_t bytes);
  // Counts the intermediate results of a run while it is queued and runs. A session's runs execute
  // one after another, so only the largest one counts. quota::Refusal.
  absl::StatusOr<std::unique_ptr<Arena>> AddArena(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);

  // Identifies the user: the topmost account.
  const Account* top() const { return parent_ ? parent_->top() : this; }
  // The user's name; empty for the daemon's own memory.
  const std::string& user() const { return top()->buffers_.scope().user; }
  // Includes intermediate results.
  int64_t bytes() const { return bytes_.used(); }
  int64_t buffers() const { return buffers_.used(); }
  int64_t bytes_limit() const { return bytes_.limit(); }
  int64_t buffers_limit() const { return buffers_.limit(); }

 private:
  void ForceAdd(int64_t bytes);
  void ForceAddBytes(int64_t bytes);
  absl::Status AddBytes(int64_t bytes);
  void RemoveBytes(int64_t bytes);
  void RemoveArena(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::shared_ptr<Account> parent_;
  std::atomic<bool> exempt_{false};
  quota::Meter bytes_;
  quota::Meter buffers_;
  absl::Mutex mutex_;
  std::map<int64_t, int64_t> arenas_ ABSL_GUARDED_BY(mutex_);  // how many of each size
  int64_t arena_bytes_ ABSL_GUARDED_BY(mutex_) = 0;            // counted for arenas_
};

}  // namespace kiln::buffers

#endif  // KILN_SERVER_BUFFERS_ACCOUNT_H_
