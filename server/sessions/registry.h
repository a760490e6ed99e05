// All sessions of the daemon.
#ifndef KILN_SERVER_SESSIONS_REGISTRY_H_
#define KILN_SERVER_SESSIONS_REGISTRY_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/runtime/managed_device.h"
#include "server/sessions/session.h"

namespace kiln::sessions {

// Thread-safe.
class Registry {
 public:
  struct Options {
    absl::Duration default_lease = absl::Seconds(30);
    absl::Duration max_lease = absl::Hours(1);
    int64_t max_sessions = 1024;  // open at once
    // A secret that nobody can guess: 128 random bits.
    std::function<std::string()> new_id;
    Services services;
  };

  // `devices` outlive this; there is at least one.
  Registry(Options options, std::vector<runtime::ManagedDevice*> devices);

  // `lease` zero: the default; held to [1 s, max_lease]. `device` empty: the usable one with the
  // fewest sessions. NOT_FOUND: no such device. UNAVAILABLE: it takes no sessions, or the daemon
  // stops. RESOURCE_EXHAUSTED: as many are open as may be, reason TOO_MANY_SESSIONS, or as this
  // user may have, reason USER_SESSIONS: no more than are still free, or eight, and the last
  // sixteenth is for users who have none. So nobody keeps others out.
  absl::StatusOr<std::shared_ptr<Session>> Open(const std::string& user, ClientInfo client,
                                                absl::Duration lease, const std::string& device)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // NOT_FOUND: unknown, closed or expired. Once Refuse was called, its reason instead.
  absl::StatusOr<std::shared_ptr<Session>> Find(const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Close(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of one user; returns how many there were.
  int CloseAllOf(const std::string& user, const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order in which they were opened.
  std::vector<std::shared_ptr<Session>> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Everybody who has opened a session since the daemon started.
  std::vector<std::shared_ptr<User>> ListUsers() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes the sessions whose lease has run out; returns how many.
  int CloseExpired() ABSL_LOCKS_EXCLUDED(mutex_);
  // No new sessions; Open fails with `reason`.
  void Refuse(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAll(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::shared_ptr<Session>> Add(const std::string& user, ClientInfo client,
                                               absl::Duration lease, const std::string& device)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<runtime::ManagedDevice*> Choose(const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status TooManySessions() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoomFor(const std::string& user) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  const Options options_;
  const std::vector<runtime::ManagedDevice*> devices_;
  mutable absl::Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<User>> users_ ABSL_GUARDED_BY(mutex_);
};

// 128 bits of getrandom(2) in hexadecimal.
std::string RandomId();

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_REGISTRY_H_
