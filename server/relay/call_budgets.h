// Limits how much per second clients may ask for that costs the server something before it knows
// who they are or what they want: new connections, calls, small frames. A client that begins calls
// and resets them at once keeps the server busy although it never has many calls open ("rapid
// reset", CVE-2023-44487), and the server's limit of concurrent streams does not stop it.
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

// What one connection, one user and others may do together. A call or a small frame needs a token
// of each bucket that it concerns: its connection's, and its user's. As long as no call of the
// connection was accepted, it is a stranger's, and concerns all strangers of its origin
// (Peer::origin), and all strangers.
struct Rates {
  Rate connection;
  Rate user;
  Rate origin;
  Rate strangers;
};

struct BudgetRates {
  Rates calls{.connection = {.per_second = 1000, .burst = 2000},
              .user = {.per_second = 2000, .burst = 4000},
              .origin = {.per_second = 200, .burst = 400},
              .strangers = {.per_second = 2000, .burst = 4000}};
  // Whatever they are: even an empty one costs the server.
  Rates small_frames{.connection = {.per_second = 50'000, .burst = 100'000},
                     .user = {.per_second = 100'000, .burst = 200'000},
                     .origin = {.per_second = 20'000, .burst = 40'000},
                     .strangers = {.per_second = 50'000, .burst = 100'000}};
  // New connections, of one origin and of all. TLS makes each cost about a millisecond.
  Rate greetings_of_origin{.per_second = 100, .burst = 400};
  Rate greetings{.per_second = 400, .burst = 1000};
};

// The buckets that connections share. Thread-safe.
class CallBudgets {
 public:
  // Origins and users whose buckets are kept. Above that, the rest share one bucket of each kind.
  static constexpr size_t kBucketsMax = 4096;

 private:
  // What one connection, user or origin has left.
  struct Owner {
    TokenBucket calls;
    TokenBucket small_frames;
    TokenBucket greetings;

    bool IsFull(absl::Time now) {
      return calls.IsFull(now) && small_frames.IsFull(now) && greetings.IsFull(now);
    }
  };

 public:
  class Connection {
   public:
    // What it does is charged to this user from now on, and not to the strangers.
    void SetUser(const std::string& user) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);
    // These take a token of each bucket if all have one, and return zero. Otherwise they return how
    // long until the first missing token is there.
    absl::Duration BeginCall(absl::Time now) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);
    absl::Duration SendSmallFrame(absl::Time now) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);

   private:
    friend class CallBudgets;
    explicit Connection(CallBudgets& budgets) : budgets_(budgets) {}

    CallBudgets& budgets_;
    // Its own first. The others are shared with other connections and with the tables.
    std::vector<std::shared_ptr<Owner>> owners_ ABSL_GUARDED_BY(budgets_.mutex_);
  };

  explicit CallBudgets(const BudgetRates& rates)
      : rates_(rates),
        strangers_(MakeOwner(&Rates::strangers, rates.greetings)),
        other_origins_(MakeOwner(&Rates::origin, rates.greetings_of_origin)),
        other_users_(MakeOwner(&Rates::user, rates.greetings)) {}

  // Takes a token for a new connection and returns zero, or returns how long until there is one.
  absl::Duration Greet(const std::string& origin, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the budget of a new connection. An origin that comes back finds its bucket as it left
  // it. Requires: this outlives the result.
  std::unique_ptr<Connection> Open(const std::string& origin, absl::Time now)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Table = std::map<std::string, std::shared_ptr<Owner>>;
  using Bucket = TokenBucket Owner::*;

  std::shared_ptr<Owner> MakeOwner(Rate Rates::*whose, Rate greetings) const;
  std::shared_ptr<Owner> Origin(const std::string& origin) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<Owner> User(const std::string& user) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Duration Take(const std::vector<std::shared_ptr<Owner>>& owners, Bucket bucket,
                      absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes place in a full table.
  bool HasPlace(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BudgetRates rates_;
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // the latest that was given
  Table origins_ ABSL_GUARDED_BY(mutex_);
  Table users_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> strangers_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> other_origins_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> other_users_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CALL_BUDGETS_H_
