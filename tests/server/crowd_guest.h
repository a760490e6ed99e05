// One of a crowd at a daemon, who knows what every answer must be.
#ifndef KILN_TESTS_SERVER_CROWD_GUEST_H_
#define KILN_TESTS_SERVER_CROWD_GUEST_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/client.h"
#include "tests/server/exact_client.h"

namespace kiln::testing {

// What the daemon grants to each user of the crowd, and all in all.
struct Crowd {
  static constexpr int kUsers = 8;
  // Of sessions: more than a slow machine takes to come back after a cut.
  static constexpr uint32_t kLeaseSeconds = 20;
  static constexpr int64_t kHostBytes = 256 << 20;
  static constexpr uint64_t kGraphNodes = 50;
  static constexpr uint64_t kDeviceBytes = 1 << 20;
  static constexpr int64_t kLeastOperations = 10;  // of each, in a visit of them all
};

// The ids of sessions, for others to try.
class Ids {
 public:
  void Add(int user, const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    ids_[user % Crowd::kUsers] = id;
  }
  std::string OfAnother(int user) ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    return ids_[(user + 1) % Crowd::kUsers];
  }

 private:
  absl::Mutex mutex_;
  std::string ids_[Crowd::kUsers] ABSL_GUARDED_BY(mutex_);
};

// One client after another, under one user's name: computes, loses its connection, vanishes, asks
// for more than there is or than its quotas allow, cancels, sends nonsense, looks for what is
// others'. Of one thread.
class Guest {
 public:
  Guest(std::string address, int user, std::string token, uint64_t seed, Ids& ids)
      : address_(std::move(address)),
        user_(user),
        login_{.token = std::move(token)},
        random_(seed),
        ids_(ids) {}

  void Stay(absl::Time until) {
    while (wrong_.empty() && MayGoOn(until)) VisitOnce(until);
  }
  // What was not as expected; empty if all was.
  const std::string& wrong() const { return wrong_; }
  int64_t operations() const { return operations_; }

 private:
  // Each does something, however slow the machine.
  bool MayGoOn(absl::Time until) const {
    const absl::Time now = absl::Now();
    return now < until || (operations_ < Crowd::kLeastOperations && now < until + absl::Minutes(2));
  }
  bool OneIn(uint64_t chances) { return random_() % chances == 0; }
  void Expect(bool holds, const std::string& what, const std::string& found) {
    if (!holds && wrong_.empty()) wrong_ = absl::StrCat(what, ": ", found);
  }
  void VisitOnce(absl::Time until);
  void Close(Client& client);
  // Announced, and never sent: refused, since it cannot come to anything.
  void AskTooMuch(Client& client);
  // In a session of its own, which goes on.
  void ExceedQuotas();
  void SendNonsense(Client& client);
  // From the past it has no effect, from the future the stream ends. The sender's stream ends
  // either way, and it comes back.
  void SendWrongNumber(Client& client);
  void Pry(Client& client);
  // A run ends well or is cancelled, and what was cancelled has changed nothing.
  void CancelSome();

  const std::string address_;
  const int user_;
  const Client::Login login_;
  Random random_;
  Ids& ids_;
  std::string wrong_;
  int64_t operations_ = 0;
};

}  // namespace kiln::testing

#endif  // KILN_TESTS_SERVER_CROWD_GUEST_H_
