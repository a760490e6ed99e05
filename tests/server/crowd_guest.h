// One of a crowd at a daemon, who knows what every answer must be.
#ifndef KILN_TESTS_SERVER_CROWD_GUEST_H_
#define KILN_TESTS_SERVER_CROWD_GUEST_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/server/client.h"
#include "tests/server/exact_client.h"

namespace kiln::testing {

// What the daemon grants to each user of the crowd, and all in all.
struct Crowd {
  static constexpr int kUsers = 8;
  static constexpr char kUserPrefix[] = "user";
  // Sessions have long leases, except where the client vanishes in the end. On a slow machine a
  // short lease may run out while the client still uses its session.
  static constexpr uint32_t kLeaseSeconds = 3600, kShortLeaseSeconds = 2;
  static constexpr int64_t kHostBytes = 256 << 20;
  static constexpr uint64_t kGraphNodes = 50;
  static constexpr uint64_t kDeviceBytes = 1 << 20;
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

  // Makes visits until `operations` operations have been sent.
  void Stay(int64_t operations) {
    while (wrong_.empty() && operations_ < operations) VisitOnce(operations);
  }
  // What was not as expected; empty if all was.
  const std::string& wrong() const { return wrong_; }
  int64_t operations() const { return operations_; }

 private:
  bool OneIn(uint64_t chances) { return random_() % chances == 0; }
  void Expect(bool holds, const std::string& what, const std::string& found) {
    if (!holds && wrong_.empty()) wrong_ = absl::StrCat(what, ": ", found);
  }
  void VisitOnce(int64_t operations);
  // Waits until there is room for a session, and opens it: sessions of vanished clients stay for a
  // while.
  std::unique_ptr<Client> Enter(uint32_t lease_seconds);
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
