// The daemon's own memory: one budget that counts the host memory that clients make it hold.
//
// Every holder of memory for a client owns a Charge. A charge that does not fit is refused, and the
// request fails. A quarter of the budget is divided equally: each account can always have its part
// of that. Eleven sixteenths are shared; the last sixteenth is for charges that cannot be refused.
// An account may take shared memory while its user holds no more than four times what is free
// (Choudhury, Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998): a
// single account can use most of it, and a greedy one leaves some. The last quarter of the shared
// memory is for accounts that hold no more than 1/32 of the budget.
//
// Sessions have accounts, and the accounts of one user have a common parent. A user's sessions
// together get as much shared memory as one session would. The last eighth of it is for users that
// hold no more than 1/32 of the budget, so that many small sessions of one user leave memory for
// another user's.
#ifndef KILN_SERVER_MEMORY_HOST_MEMORY_H_
#define KILN_SERVER_MEMORY_HOST_MEMORY_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/quota/refusal.h"

namespace kiln::memory {

// The purpose of memory; the label of kiln_host_memory_bytes.
enum class Use {
  kSessions,     // an open session and its stream
  kOperations,   // received and not answered
  kAnswers,      // not sent or not acknowledged
  kTransfers,    // values being sent to a client
  kHandles,      // tables of tensors, and errors of failed ones
  kGraphs,       // as received
  kCompilation,  // graphs that are checked or compiled
  kPrograms,     // compiled, and the sessions' tables of them
  kBlobs,        // uploads
};
inline constexpr int kNumUses = 9;
absl::string_view Name(Use use);  // "operations"

class Account;

// The bytes that an account holds as long as this object lives. Movable. Used by one thread at a
// time.
class Charge {
 public:
  Charge() = default;
  ~Charge() { Release(); }
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept;

  int64_t bytes() const { return bytes_; }
  // RESOURCE_EXHAUSTED, and nothing changes, if it grows and does not fit. A default-constructed
  // charge holds nothing, and resizing has no effect.
  absl::Status Resize(int64_t bytes);
  // The same for memory that cannot be refused, and is small or bounded otherwise.
  void ForceResize(int64_t bytes);
  void Release() { ForceResize(0); }

 private:
  friend class Account;
  Charge(std::shared_ptr<Account> account, Use use) : account_(std::move(account)), use_(use) {}

  std::shared_ptr<Account> account_;
  Use use_ = Use::kSessions;
  int64_t bytes_ = 0;
};

// Thread-safe. Shared by everything that is charged to its accounts.
class HostMemory : public std::enable_shared_from_this<HostMemory> {
 public:
  // `accounts`: the maximum number of accounts in use at a time.
  HostMemory(int64_t limit_bytes, int64_t accounts);
  ~HostMemory();

  int64_t limit_bytes() const { return limit_; }
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  int64_t used_bytes(Use use) const { return by_use_[Index(use)].load(std::memory_order_relaxed); }
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Returns whether less than an eighth of the shared memory is left. Clients that wait for answers
  // are then not read.
  bool IsShort() const {
    return shared_used_.load(std::memory_order_relaxed) > shared_limit_ - shared_limit_ / 8;
  }

  // Makes a client's account; `name` is for messages: "session s3". `parent` is its user's account,
  // which has no parent itself; null: the account has no user.
  std::shared_ptr<Account> NewAccount(std::string name, std::shared_ptr<Account> parent = nullptr);
  // Makes a user's account, which may have its own limit.
  std::shared_ptr<Account> NewUserAccount(const std::string& user);
  // Called with the bytes of a charge before it is refused, to free memory that is not needed any
  // more. With a name, only memory that counts as that user's helps. Called by any thread, possibly
  // with locks held. Requires: nothing has been charged yet when it is set.
  using Reclaimer = std::function<void(int64_t bytes, const std::string& user)>;
  void SetReclaimer(Reclaimer reclaimer) { reclaimer_ = std::move(reclaimer); }

 private:
  friend class Account;
  static size_t Index(Use use) { return static_cast<size_t>(use); }
  // "3.5 MiB of 4.0 MiB are in use (blobs 2.0 MiB, programs 1.5 MiB)".
  std::string Describe() const;

  const int64_t limit_;
  const int64_t guaranteed_;    // to each account
  const int64_t shared_limit_;  // for what accounts have beyond that
  const int64_t modest_;        // an account that holds no more may use all of it
  Reclaimer reclaimer_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> shared_used_{0};
  std::atomic<int64_t> refused_{0};
  std::array<std::atomic<int64_t>, kNumUses> by_use_{};
};

// The memory that one client holds. Thread-safe. Shared, since charges may outlive the session.
class Account : public std::enable_shared_from_this<Account> {
 public:
  // Use HostMemory::NewAccount.
  Account(std::shared_ptr<HostMemory> memory, std::string name, std::shared_ptr<Account> parent,
          std::string user = "")
      : memory_(std::move(memory)),
        name_(std::move(name)),
        parent_(std::move(parent)),
        user_(std::move(user)) {}
  // Charges, and accounts with this parent, keep it alive.
  ~Account();

  // Limits all that the user's sessions hold. Requires: a user's account. 0: only the general
  // limits.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // While it is set, nothing is refused: a client keeps what it already has.
  void SetExempt(bool exempt) { exempt_.store(exempt, std::memory_order_relaxed); }

  // RESOURCE_EXHAUSTED, reason HOST_MEMORY: the message says how much is held for what, and what to
  // do; or quota::Refusal.
  absl::StatusOr<Charge> Reserve(Use use, int64_t bytes);
  // The same error if the bytes would not fit even if nothing else were charged.
  absl::Status CheckFitsAlone(Use use, int64_t bytes) const;
  // Returns an empty charge, which Charge::ForceResize grows for memory that cannot be refused.
  Charge Open(Use use) { return Charge(shared_from_this(), use); }

  // Returns false if charges beyond the account's guarantee are refused at present.
  bool HasRoom() const { return MayHoldItsShare() && !ExceedsLimit(0); }

  const HostMemory& memory() const { return *memory_; }
  // The parent, or this account if it has none: the same for all sessions of a user. Only for
  // comparison.
  const Account* user() const { return parent_ ? parent_.get() : this; }
  // Empty if the account has no user.
  const std::string& user_name() const { return top().user_; }
  // A parent's bytes include those of all its accounts.
  int64_t bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class Charge;
  // `bytes` may be negative. Returns by how much the account's part of the shared memory grows.
  int64_t Add(Use use, int64_t bytes);
  bool TryAdd(Use use, int64_t bytes);
  // The user's account, or this one if it has no parent.
  const Account& top() const { return parent_ ? *parent_ : *this; }
  // Returns whether the user's limit is exceeded with this many more bytes.
  bool ExceedsLimit(int64_t bytes) const;
  // Whether the account may hold its shared memory, including what it has just taken.
  bool MayHoldItsShare() const;
  absl::Status Refusal(Use use, int64_t bytes) const;
  absl::Status AddOrRefuse(Use use, int64_t bytes);

  const std::shared_ptr<HostMemory> memory_;
  const std::string name_;
  const std::shared_ptr<Account> parent_;
  const std::string user_;
  std::atomic<int64_t> limit_{0};
  std::atomic<int64_t> used_{0};  // including what the accounts of its children hold
  std::atomic<int64_t> own_{0};   // without that
  std::atomic<bool> exempt_{false};
};

}  // namespace kiln::memory

#endif  // KILN_SERVER_MEMORY_HOST_MEMORY_H_
