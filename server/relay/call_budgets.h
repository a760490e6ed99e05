// Limits how many calls are begun per second. A client that begins calls and resets them at once
// keeps the server busy although it never has many calls open ("rapid reset", CVE-2023-44487), and
// the server's limit of concurrent streams does not stop it.
#ifndef KILN_SERVER_RELAY_CALL_BUDGETS_H_
#define KILN_SERVER_RELAY_CALL_BUDGETS_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/relay/token_bucket.h"

namespace kiln::relay {

// A call needs a token of each bucket that it concerns: its connection's, and its user's. As long
// as no call of the connection was accepted, it is a stranger's, and concerns all strangers of its
// origin (Peer::origin), and all strangers.
struct CallRates {
  Rate connection{.per_second = 1000, .burst = 2000};
  Rate user{.per_second = 2000, .burst = 4000};
  Rate origin{.per_second = 200, .burst = 400};
  Rate strangers{.per_second = 2000, .burst = 4000};
};

// The buckets that connections share. Thread-safe.
class CallBudgets {
 public:
  // Origins and users whose buckets are kept. Above that, the rest share one bucket of each kind.
  static constexpr size_t kBucketsMax = 4096;

  class Connection {
   public:
    // Its calls are charged to this user from now on, and not to the strangers.
    void SetUser(const std::string& user) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);
    // Takes a token of each bucket if all have one, and returns zero. Otherwise returns how long
    // until the first missing token is there.
    absl::Duration BeginCall(absl::Time now) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);

   private:
    friend class CallBudgets;
    explicit Connection(CallBudgets& budgets) : budgets_(budgets) {}

    CallBudgets& budgets_;
    // Its own first. The others are shared with other connections and with the tables.
    std::vector<std::shared_ptr<TokenBucket>> buckets_ ABSL_GUARDED_BY(budgets_.mutex_);
  };

  explicit CallBudgets(CallRates rates)
      : rates_(rates),
        strangers_(std::make_shared<TokenBucket>(rates.strangers)),
        other_origins_(std::make_shared<TokenBucket>(rates.origin)),
        other_users_(std::make_shared<TokenBucket>(rates.user)) {}

  // Returns the budget of a new connection. An origin that comes back finds its bucket as it left
  // it. Requires: this outlives the result.
  std::unique_ptr<Connection> Open(const std::string& origin, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Table = std::map<std::string, std::shared_ptr<TokenBucket>>;

  std::shared_ptr<TokenBucket> Find(Table& table, const std::string& key, Rate rate,
                                    const std::shared_ptr<TokenBucket>& others)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropUnused(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const CallRates rates_;
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // the latest that was given
  Table origins_ ABSL_GUARDED_BY(mutex_);
  Table users_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<TokenBucket> strangers_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<TokenBucket> other_origins_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<TokenBucket> other_users_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CALL_BUDGETS_H_
