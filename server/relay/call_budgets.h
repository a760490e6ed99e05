// Rate limits for actions that cost the server something before it knows who the client is or what
// it wants: new connections, calls, small frames. A client that begins calls and resets them at
// once keeps the server busy although it never has many calls open ("rapid reset", CVE-2023-44487),
// and the server's limit of concurrent streams does not stop it.
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

// Rates for one connection, one user and others together. A call or a small frame takes a token of
// each bucket that applies: its connection's and its user's. Before the first accepted call of a
// connection, its client is a stranger; the buckets of all strangers of its origin (Peer::origin),
// and of all strangers, then apply instead of a user's.
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
  // Small frames of any type: even an empty one costs the server.
  Rates small_frames{.connection = {.per_second = 50'000, .burst = 100'000},
                     .user = {.per_second = 100'000, .burst = 200'000},
                     .origin = {.per_second = 20'000, .burst = 40'000},
                     .strangers = {.per_second = 50'000, .burst = 100'000}};
  // New connections, of one origin and in total. With TLS each costs about a millisecond.
  Rate greetings_of_origin{.per_second = 100, .burst = 400};
  Rate greetings{.per_second = 400, .burst = 1000};
};

// The buckets that connections share. Thread-safe.
class CallBudgets {
 public:
  // The most origins and the most users with their own buckets. Beyond that, the rest share one
  // bucket of each kind.
  static constexpr size_t kBucketsMax = 4096;

 private:
  // The remaining tokens of one connection, user or origin.
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
    // From now on charges this user instead of the strangers.
    void SetUser(const std::string& user) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);
    // Take a token of each bucket and return zero if all have one. Otherwise return the time until
    // the first missing token is available.
    absl::Duration BeginCall(absl::Time now) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);
    absl::Duration SendSmallFrame(absl::Time now) ABSL_LOCKS_EXCLUDED(budgets_.mutex_);

   private:
    friend class CallBudgets;
    explicit Connection(CallBudgets& budgets) : budgets_(budgets) {}

    CallBudgets& budgets_;
    // First its own. The others are shared with other connections and with the tables.
    std::vector<std::shared_ptr<Owner>> owners_ ABSL_GUARDED_BY(budgets_.mutex_);
  };

  explicit CallBudgets(const BudgetRates& rates)
      : rates_(rates),
        strangers_(MakeOwner(&Rates::strangers, rates.greetings)),
        other_origins_(MakeOwner(&Rates::origin, rates.greetings_of_origin)),
        other_users_(MakeOwner(&Rates::user, rates.greetings)) {}

  // Takes a token for a new connection and returns zero, or returns the time until there is one.
  absl::Duration Greet(const std::string& origin, absl::Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the budget of a new connection. A returning origin finds its bucket as it was left.
  // Requires: this object outlives the result.
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
  void Validate() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Makes room in a full table. Returns false if there is none.
  bool HasPlace(Table& table) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const BudgetRates rates_;
  absl::Mutex mutex_;
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();  // latest time seen
  Table origins_ ABSL_GUARDED_BY(mutex_);
  Table users_ ABSL_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> strangers_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> other_origins_ ABSL_PT_GUARDED_BY(mutex_);
  const std::shared_ptr<Owner> other_users_ ABSL_PT_GUARDED_BY(mutex_);
};

}  // namespace kiln::relay

#endif  // KILN_SERVER_RELAY_CALL_BUDGETS_H_
