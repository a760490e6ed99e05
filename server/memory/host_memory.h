// The daemon's own memory: one budget that counts what clients make it hold beside device memory.
//
// Whoever holds something for a client has a Charge for it. A charge that does not fit is refused,
// and with it what asked for it. A quarter of the budget is divided equally: each account can
// always have its part of that. The rest is shared. An account may take more of it while it holds
// no more than four times what is free (Choudhury, Hahne, "Dynamic Queue Length Thresholds for
// Shared-Memory Packet Switches", 1998): one that is alone can use most of it, and a greedy one
// leaves some. The last quarter of it is for accounts that hold no more than a thirty-second of the
// budget.
//
// Sessions have accounts, and those of one user a parent. What is shared, a user's sessions may
// take together as if they were one; the last eighth of it is for users that hold no more than a
// thirty-second, so that many small sessions of one user leave room for another's.
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

// What memory is held for; the label of kiln_host_memory_bytes.
enum class Use {
  kSessions,     // what an open session and its stream need
  kOperations,   // received, and not answered
  kAnswers,      // not sent or not acknowledged
  kTransfers,    // values on their way to a client
  kHandles,      // tables of tensors, and errors that failed ones keep
  kGraphs,       // as they were sent
  kCompilation,  // graphs that are checked or compiled
  kPrograms,     // compiled, and the sessions' tables of them
  kBlobs,        // uploads
};
inline constexpr int kNumUses = 9;
absl::string_view Name(Use use);  // "operations"

class Account;

// Bytes that an account holds, for as long as it lives. Movable; one thread at a time.
class Charge {
 public:
  Charge() = default;
  ~Charge() { Release(); }
  Charge(Charge&& other) noexcept { *this = std::move(other); }
  Charge& operator=(Charge&& other) noexcept;

  int64_t bytes() const { return bytes_; }
  // RESOURCE_EXHAUSTED, and nothing changes, if it grows by more than fits. A charge that was never
  // made holds nothing, and stays so.
  absl::Status Resize(int64_t bytes);
  // The same for what cannot be refused, and is small or bounded otherwise.
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
  // At most this many accounts are in use at a time.
  HostMemory(int64_t limit_bytes, int64_t accounts);

  int64_t limit_bytes() const { return limit_; }
  int64_t used_bytes() const { return used_.load(std::memory_order_relaxed); }
  int64_t used_bytes(Use use) const { return by_use_[Index(use)].load(std::memory_order_relaxed); }
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }
  // Less than an eighth of what is shared is left: clients that wait for answers are not read
  // meanwhile.
  bool IsShort() const {
    return shared_used_.load(std::memory_order_relaxed) > shared_limit_ - shared_limit_ / 8;
  }

  // A client's; `name` is for messages: "session s3". `parent`: its user's, which has none itself;
  // null: it is alone.
  std::shared_ptr<Account> NewAccount(std::string name, std::shared_ptr<Account> parent = nullptr);
  // A user's, which may have a limit of its own.
  std::shared_ptr<Account> NewUserAccount(const std::string& user);
  // Called, before a charge is refused, with the bytes that are missing: gives back what nobody
  // needs any more. With a name, only what counts as that user's helps. Any thread may call it,
  // with locks held. Before anything is charged.
  using Reclaimer = std::function<void(int64_t bytes, const std::string& user)>;
  void SetReclaimer(Reclaimer reclaimer) { reclaimer_ = std::move(reclaimer); }

 private:
  friend class Account;
  static size_t Index(Use use) { return static_cast<size_t>(use); }
  // "3.5 MiB of 4.0 MiB are in use (blobs 2.0 MiB, programs 1.5 MiB)".
  std::string Describe() const;

  const int64_t limit_;
  const int64_t guaranteed_;    // to each account
  const int64_t shared_limit_;  // of what accounts have beyond that
  const int64_t modest_;        // an account that holds no more may use all of it
  Reclaimer reclaimer_;
  std::atomic<int64_t> used_{0};
  std::atomic<int64_t> shared_used_{0};
  std::atomic<int64_t> refused_{0};
  std::array<std::atomic<int64_t>, kNumUses> by_use_{};
};

// What one client holds. Thread-safe. Shared, since what it holds may outlive its session.
class Account : public std::enable_shared_from_this<Account> {
 public:
  // Use HostMemory::NewAccount.
  Account(std::shared_ptr<HostMemory> memory, std::string name, std::shared_ptr<Account> parent,
          std::string user = "")
      : memory_(std::move(memory)),
        name_(std::move(name)),
        parent_(std::move(parent)),
        user_(std::move(user)) {}

  // Of a user's account: for all that his sessions hold. 0: none but what holds for everybody.
  void SetLimit(int64_t bytes) { limit_.store(bytes, std::memory_order_relaxed); }
  int64_t limit() const { return limit_.load(std::memory_order_relaxed); }

  // While it is set, nothing is refused: what a client already has stays its own.
  void SetExempt(bool exempt) { exempt_.store(exempt, std::memory_order_relaxed); }

  // RESOURCE_EXHAUSTED, reason HOST_MEMORY: who holds how much for what, and what to do; or
  // quota::Refusal.
  absl::StatusOr<Charge> Reserve(Use use, int64_t bytes);
  // The same error for what would not fit if nothing else were there.
  absl::Status CheckFitsAlone(Use use, int64_t bytes) const;
  // An empty charge, which Charge::ForceResize grows for what cannot be refused.
  Charge Open(Use use) { return Charge(shared_from_this(), use); }

  // False: what it asks for beyond its guarantee is refused at present.
  bool HasRoom() const { return MayHoldItsShare() && !ExceedsLimit(0); }

  const HostMemory& memory() const { return *memory_; }
  // The parent, or itself without one: the same for all sessions of a user. For comparison.
  const Account* user() const { return parent_ ? parent_.get() : this; }
  // Empty if it is alone.
  const std::string& user_name() const { return top().user_; }
  // A parent's: those of all its accounts.
  int64_t bytes() const { return used_.load(std::memory_order_relaxed); }

 private:
  friend class Charge;
  // `bytes` may be negative. Returns by how much the account's part of the shared memory grows.
  int64_t Add(Use use, int64_t bytes);
  bool TryAdd(Use use, int64_t bytes);
  // The user's, or this one if it is alone.
  const Account& top() const { return parent_ ? *parent_ : *this; }
  // With so many bytes more.
  bool ExceedsLimit(int64_t bytes) const;
  // Of the shared memory, with what it has just taken.
  bool MayHoldItsShare() const;
  absl::Status Refusal(Use use, int64_t bytes) const;
  absl::Status AddOrRefuse(Use use, int64_t bytes);

  const std::shared_ptr<HostMemory> memory_;
  const std::string name_;
  const std::shared_ptr<Account> parent_;
  const std::string user_;
  std::atomic<int64_t> limit_{0};
  std::atomic<int64_t> used_{0};
  std::atomic<bool> exempt_{false};
};

}  // namespace kiln::memory

#endif  // KILN_SERVER_MEMORY_HOST_MEMORY_H_
