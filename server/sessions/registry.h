// All sessions of the daemon.
#ifndef KILN_SERVER_SESSIONS_REGISTRY_H_
#define KILN_SERVER_SESSIONS_REGISTRY_H_

#include <cstddef>
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
#include "server/runtime/device/managed_device.h"
#include "server/sessions/closed_sessions.h"
#include "server/sessions/session.h"

namespace kiln::sessions {

// Returns UNAVAILABLE, reason RESTARTING: the session is not lost; attach again.
absl::Status Restarting(absl::string_view why);

// Sessions that an earlier daemon has saved and that are not restored yet. Thread-safe.
class AbsentSessions {
 public:
  virtual ~AbsentSessions() = default;
  // True once all of them have been listed, so that Ask knows them all. The daemon serves earlier.
  virtual bool KnowsAll() const = 0;
  // Returns why the user's session is not restored yet; OK if it is not one of these.
  virtual absl::Status Ask(const std::string& user, const std::string& id) = 0;
  // The same by number. `user` null: of any user.
  virtual absl::Status Ask(int64_t number, const std::string* user) = 0;
  // Closes the absent sessions of one user; returns how many there were.
  virtual int CloseAllOf(const std::string& user) = 0;
};

// What a saved session needs of a device.
struct DeviceNeed {
  std::string device;
  int64_t bytes = 0;
};

// Thread-safe.
class Registry {
 public:
  struct Options {
    absl::Duration default_lease = absl::Minutes(15);
    absl::Duration lease_max = absl::Hours(1);
    // The lease after a lost connection, for clients on this machine that request no lease.
    absl::Duration local_away_lease = absl::Minutes(2);
    int64_t sessions_max = 1024;  // open at once
    // A user's limits. Called when the user opens the first session, and by UpdateLimits.
    std::function<quota::Limits(const std::string& user)> limits_of = [](const std::string&) {
      return quota::Limits();
    };
    // The prefix of the ids that this daemon makes, by which ids of other daemons are recognized.
    // Eight characters.
    std::string mark = "00000000";
    // Called with each opened session that has a recorder: takes its first checkpoint, then one at
    // each interval.
    std::function<void(const std::shared_ptr<Session>&)> begin_checkpoints;
    // Returns a secret that cannot be guessed: 128 random bits.
    std::function<std::string()> new_id;
    Services services;
  };

  // Requires: `devices` outlive this and are not empty.
  Registry(Options options, std::vector<runtime::ManagedDevice*> devices);

  // Opens a session. `lease` is clamped to [1 s, lease_max]; zero: the default. `device` empty: the
  // usable device with the fewest sessions. NOT_FOUND: no such device. UNAVAILABLE: the device
  // takes no sessions, or the daemon is stopping. RESOURCE_EXHAUSTED, reason TOO_MANY_SESSIONS: the
  // limit of all sessions is reached. RESOURCE_EXHAUSTED, reason USER_SESSIONS: a user may have as
  // many sessions as are still free, or eight, and the last sixteenth is for users who have none,
  // so that no user keeps others out. Or quota::Refusal.
  // `checkpoint_interval` above zero: a checkpoint is taken at the start and at this interval,
  // clamped to [1 s, 1 h]. FAILED_PRECONDITION, reason SNAPSHOTS_UNAVAILABLE: this daemon has no
  // folder for checkpoints. If the first one fails, for example because the disk is full, the
  // session opens without, and this is logged.
  absl::StatusOr<std::shared_ptr<Session>> Open(
      const std::string& user, ClientInfo client, absl::Duration lease, const std::string& device,
      fairness::Priority priority = fairness::Priority::kInteractive,
      absl::Duration checkpoint_interval = absl::ZeroDuration()) ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds a session of the user. NOT_FOUND: closed or expired (UNKNOWN_SESSION), or of a daemon
  // that did not save it (SESSION_LOST). For another user's session the answer is the same as for
  // one that never existed. After Refuse, an unknown session gives its reason instead. Errors of
  // AbsentSessions come before all of these.
  absl::StatusOr<std::shared_ptr<Session>> Find(const std::string& user,
                                                const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Finds the user's session with this name. NOT_FOUND, reason UNKNOWN_NAME; otherwise as Find.
  absl::StatusOr<std::shared_ptr<Session>> FindByName(const std::string& user,
                                                      const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  SessionNames& names() { return names_; }
  // Why sessions were closed, for their clients.
  ClosedSessions& closed() { return closed_; }
  // Requires: called before Find or FindByName; `absent` outlives this.
  void SetAbsent(AbsentSessions* absent) { absent_ = absent; }
  absl::Status Close(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the session that lists call `name` (SessionIdentity::name), one of the user's or, with
  // `of_anybody`, of any user; or the one that the user has parked under this name. Its client
  // gets NOT_FOUND, SESSION_CLOSED. Returns the closed session. NOT_FOUND, UNKNOWN_NAME: there is
  // none; FAILED_PRECONDITION, AMBIGUOUS_NAME: two sessions have this name; UNAVAILABLE: it is not
  // restored yet.
  absl::StatusOr<std::shared_ptr<Session>> CloseByName(const std::string& user, bool of_anybody,
                                                       const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Closes the sessions of one user, including the absent ones; returns how many there were.
  int CloseAllOf(const std::string& user, const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // For sessions that an earlier daemon has saved: new ones get numbers from `number` on.
  void CountFrom(int64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes an empty session, which only the caller knows, on the first of the devices that it needs.
  // UNAVAILABLE: a device does not exist; RESOURCE_EXHAUSTED: not enough device memory. Requires:
  // `needs` is not empty; CountFrom was called with a higher number than the session's.
  absl::StatusOr<std::shared_ptr<Session>> Make(const SessionIdentity& identity,
                                                const std::string& user,
                                                const std::vector<DeviceNeed>& needs)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds the session, so that Find returns it. The limit of open sessions is not enforced.
  // Requires: Make has made it, and it was not added before.
  void Adopt(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(mutex_);
  // The sessions, in the order in which they were opened.
  std::vector<std::shared_ptr<Session>> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the user; creates the entry if there is none.
  std::shared_ptr<User> GetUser(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // All users who have opened a session, or received a large answer, since the daemon started.
  std::vector<std::shared_ptr<User>> ListUsers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads the user's limits again and applies them.
  void UpdateLimits(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes the sessions whose lease has run out; returns how many.
  int CloseExpired() ABSL_LOCKS_EXCLUDED(mutex_);
  // Stops opening sessions: Open fails with `reason`.
  void Refuse(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAll(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::shared_ptr<Session>> FindToClose(const std::string& user, bool of_anybody,
                                                       const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Null if there is none.
  std::shared_ptr<Session> Lookup(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Session>> Add(const std::string& user, ClientInfo client,
                                               absl::Duration lease, const std::string& device,
                                               fairness::Priority priority,
                                               absl::Duration checkpoint_interval)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<runtime::ManagedDevice*> Choose(const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Creates the user on first use.
  const std::shared_ptr<User>& UserOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // User::Explain.
  absl::Status Explained(const std::string& user, const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TooManySessions() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  absl::Status CheckRoomFor(const User& user) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Each session is under its own id, its user is the known one, and its number was given.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  size_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return sessions_.size() + users_.size();
  }

  SessionNames names_;
  ClosedSessions closed_;
  const Options options_;
  const std::vector<runtime::ManagedDevice*> devices_;
  AbsentSessions* absent_ = nullptr;
  // No session's lock is taken with this held: a slow caller in one session would block all users.
  mutable absl::Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<User>> users_ ABSL_GUARDED_BY(mutex_);
  // The ids of restored sessions, and their users; no more than the earlier daemon had. A session
  // in this map that is not in sessions_ has ended.
  std::map<std::string, std::string> adopted_ ABSL_GUARDED_BY(mutex_);
};

// A session's id as its client knows it: SessionIdentity::id, and the number of takeovers.
struct FullId {
  std::string id;
  uint64_t generation = 0;
};
FullId Split(const std::string& id);

// 128 bits of getrandom(2) in hexadecimal.
std::string RandomId();

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_REGISTRY_H_
