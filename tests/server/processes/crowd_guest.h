// One of many clients of a daemon, which knows what every answer must be.
#ifndef KILN_TESTS_SERVER_PROCESSES_CROWD_GUEST_H_
#define KILN_TESTS_SERVER_PROCESSES_CROWD_GUEST_H_

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

// The daemon's limits for each user of the crowd, and its total limits.
struct Crowd {
  static constexpr int kUsers = 8;
  static constexpr char kUserPrefix[] = "user";
  // Sessions have long leases, except if the client disconnects without closing at the end. On a
  // slow machine a short lease may run out while the client still uses its session.
  static constexpr uint32_t kLeaseSeconds = 3600, kShortLeaseSeconds = 2;
  static constexpr int64_t kHostBytes = 256 << 20;
  static constexpr uint64_t kGraphNodes = 50;
  static constexpr uint64_t kDeviceBytes = 1 << 20;
};

// The ids of sessions, for other users to try.
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

// Acts as one client after another, under one user's name: computes, loses its connection,
// disappears, exceeds the daemon's limits or its quotas, cancels, sends invalid data, tries other
// users' ids. Used by one thread.
class Guest {
 public:
  Guest(std::string address, int user, std::string token, uint64_t seed, Ids& ids)
      : address_(std::move(address)),
        user_(user),
        login_{.token = std::move(token)},
        random_(seed),
        ids_(ids) {}

  // Opens sessions until `operations` operations have been sent.
  void Stay(int64_t operations) {
    while (wrong_.empty() && operations_ < operations) VisitOnce(operations);
  }
  // Describes the first unexpected result; empty if there was none.
  const std::string& wrong() const { return wrong_; }
  int64_t operations() const { return operations_; }

 private:
  bool OneIn(uint64_t chances) { return random_() % chances == 0; }
  void Expect(bool holds, const std::string& what, const std::string& found) {
    if (!holds && wrong_.empty()) wrong_ = absl::StrCat(what, ": ", found);
  }
  void VisitOnce(int64_t operations);
  // Waits until there is room for a session, and opens it: sessions of clients that disappeared
  // stay for a while.
  std::unique_ptr<Client> Enter(uint32_t lease_seconds);
  void Close(Client& client);
  // Announces an upload that exceeds the limits and is never sent; it must be refused.
  void AskTooMuch(Client& client);
  // Exceeds quotas in a session that must continue to work.
  void ExceedQuotas();
  void SendNonsense(Client& client);
  // A past number has no effect, a future number ends the stream. The sender's stream ends in both
  // cases, and it reconnects.
  void SendWrongNumber(Client& client);
  void Pry(Client& client);
  // Checks that each run either completes or is cancelled, and that cancelled runs have changed
  // nothing.
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

#endif  // KILN_TESTS_SERVER_PROCESSES_CROWD_GUEST_H_
