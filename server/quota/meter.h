// Counts how much of a resource a user has, against the user's limit.
#ifndef KILN_SERVER_QUOTA_METER_H_
#define KILN_SERVER_QUOTA_METER_H_

#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/check/check.h"
#include "server/quota/refusal.h"

namespace kiln::quota {

class Meter;

// An amount reserved from a meter during this object's lifetime. The meter must outlive it.
// Movable; used by one thread at a time.
class Share {
 public:
  Share() = default;
  ~Share() { Release(); }
  Share(Share&& other) noexcept { *this = std::move(other); }
  Share& operator=(Share&& other) noexcept {
    Release();
    meter_ = std::exchange(other.meter_, nullptr);
    amount_ = std::exchange(other.amount_, 0);
    return *this;
  }
  void Release();

 private:
  friend class Meter;
  Share(Meter* meter, int64_t amount) : meter_(meter), amount_(amount) {}

  Meter* meter_ = nullptr;
  int64_t amount_ = 0;
};

// Thread-safe. If the limit is lowered below the used amount, nothing is taken away.
class Meter {
 public:
  // `scope` is for messages. Without a user there is never a limit.
  explicit Meter(Scope scope = {}, int64_t limit = 0) : scope_(std::move(scope)), limit_(limit) {}
  // Requires: all that was taken has been given back.
  ~Meter() {
    // Only now: meanwhile the sum may wrap for a moment, because of amounts that clients chose.
    KILN_CHECK_EQ(used(), 0) << RowOf(scope_.resource).name << " of user " << scope_.user;
  }
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  int64_t used() const { return used_.load(std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }
  const Scope& scope() const { return scope_; }
  // 0: no limit.
  void SetLimit(int64_t limit) { limit_.store(limit, std::memory_order_relaxed); }

  // Returns Refusal, and takes nothing, if it does not fit. Each amount that was taken must be
  // given back, in one or several parts, before the meter is destroyed.
  absl::Status Take(int64_t amount) {
    const int64_t limit = this->limit();
    // The sum with a client's number, such as 2^62 bytes, must not overflow.
    if (limit > 0 && amount > limit) return Refusal(scope_, amount, used(), limit);
    // Added first and subtracted again if it was too much, so that two threads never use the same
    // free amount.
    const int64_t before = used_.fetch_add(amount, std::memory_order_relaxed);
    if (limit <= 0 || before <= limit - amount) return absl::OkStatus();
    Give(amount);
    return Refusal(scope_, amount, before, limit);
  }
  absl::StatusOr<Share> Reserve(int64_t amount) {
    if (absl::Status status = Take(amount); !status.ok()) return status;
    return Share(this, amount);
  }
  // For amounts that cannot be refused.
  Share ForceReserve(int64_t amount) {
    ForceTake(amount);
    return Share(this, amount);
  }
  void ForceTake(int64_t amount) { used_.fetch_add(amount, std::memory_order_relaxed); }
  void Give(int64_t amount) { used_.fetch_sub(amount, std::memory_order_relaxed); }
  // For amounts that do not add up: returns Refusal if `amount` alone is too much.
  absl::Status Check(int64_t amount) const {
    const int64_t limit = this->limit();
    return limit > 0 && amount > limit ? Refusal(scope_, amount, 0, limit) : absl::OkStatus();
  }
  bool IsFull() const {
    const int64_t limit = this->limit();
    return limit > 0 && used() >= limit;
  }

 private:
  const Scope scope_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> limit_;
};

inline void Share::Release() {
  if (meter_ != nullptr) meter_->Give(amount_);
  meter_ = nullptr;
}

}  // namespace kiln::quota

#endif  // KILN_SERVER_QUOTA_METER_H_
