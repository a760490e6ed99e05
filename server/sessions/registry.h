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
#include "server/sessions/ended_sessions.h"
#include "server/sessions/session.h"

namespace kiln::sessions {

// UNAVAILABLE, reason RESTARTING: the session is not lost; attach again.
absl::Status Restarting(absl::string_view why);

// Sessions that an earlier daemon has kept and that are not back yet. Thread-safe.
class AbsentSessions {
 public:
  virtual ~AbsentSessions() = default;
  // Whether Ask speaks of all of them: not before they have been listed, once the daemon serves.
  virtual bool KnowsAll() const = 0;
  // Why the user's session is not there; OK if it is none of these.
  virtual absl::Status Ask(const std::string& user, const std::string& id) = 0;
  // `user` null: whoever's it is.
  virtual absl::Status Ask(int64_t number, const std::string* user) = 0;
  // Those of one user end; returns how many there were.
  virtual int DropAllOf(const std::string& user) = 0;
};

// Thread-safe.
class Registry {
 public:
  struct Options {
    absl::Duration default_lease = absl::Minutes(15);
    absl::Duration max_lease = absl::Hours(1);
    // After a lost connection, for clients on this machine that name no lease.
    absl::Duration local_away_lease = absl::Minutes(2);
    int64_t max_sessions = 1024;  // open at once
    // What a user may have; asked when he comes and whenever UpdateLimits is called.
    std::function<quota::Limits(const std::string& user)> limits_of = [](const std::string&) {
      return quota::Limits();
    };
    // This daemon's, in front of the ids that it makes: those of others are known by it. Eight
    // characters.
    std::string mark = "00000000";
    // Looks after sessions that want to be protected, from when they can be found.
    std::function<void(const std::shared_ptr<Session>&)> protect;
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
  // sixteenth is for users who have none. So nobody keeps others out. Or quota::Refusal.
  // `snapshot_interval` above zero: the session is protected from the start, and an image of it is
  // taken so often, but once a second at most and once an hour at least. FAILED_PRECONDITION,
  // reason SNAPSHOTS_UNAVAILABLE: this daemon has no folder for that. For want of disk it is open
  // all the same, as the log says.
  absl::StatusOr<std::shared_ptr<Session>> Open(
      const std::string& user, ClientInfo client, absl::Duration lease, const std::string& device,
      fairness::Priority priority = fairness::Priority::kInteractive,
      absl::Duration snapshot_interval = absl::ZeroDuration()) ABSL_LOCKS_EXCLUDED(mutex_);
  // The user's. NOT_FOUND: closed or expired (UNKNOWN_SESSION), or of a daemon that did not keep it
  // (SESSION_LOST); of another's, what is said of one that never was. Once Refuse was called, its
  // reason instead. What AbsentSessions say of it comes before all that.
  absl::StatusOr<std::shared_ptr<Session>> Find(const std::string& user,
                                                const std::string& id) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The user's that has this name. NOT_FOUND, reason UNKNOWN_NAME; otherwise as Find.
  absl::StatusOr<std::shared_ptr<Session>> FindByName(const std::string& user,
                                                      const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  SessionNames& names() { return names_; }
  // What clients of sessions that have ended hear, beyond that they are unknown.
  EndedSessions& ended() { return ended_; }
  // Before anything is found. They outlive this.
  void SetAbsent(AbsentSessions* absent) { absent_ = absent; }
  absl::Status Close(const std::string& id) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the session that lists call `name` (SessionIdentity::name), one of the user's or, with
  // `of_anybody`, whoever's; or the one that the user has left under this name. Its client hears
  // NOT_FOUND, SESSION_CLOSED. NOT_FOUND, UNKNOWN_NAME; FAILED_PRECONDITION, AMBIGUOUS_NAME: it is
  // a name of two; UNAVAILABLE: it is not back yet. Returns the session, which is closed.
  absl::StatusOr<std::shared_ptr<Session>> EndByName(const std::string& user, bool of_anybody,
                                                     const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Those of one user, the absent ones too; returns how many there were.
  int CloseAllOf(const std::string& user, const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

  // For sessions that an earlier daemon has kept. New ones have numbers from `number` on.
  void CountFrom(int64_t number) ABSL_LOCKS_EXCLUDED(mutex_);
  // An empty session that only the caller knows, with the image's identity, user and device.
  // UNAVAILABLE: the device is not there; RESOURCE_EXHAUSTED: its memory.
  absl::StatusOr<std::shared_ptr<Session>> Make(const SessionImage& image)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on everybody can find it. It does not count towards the limit of those that are open.
  void Adopt(std::shared_ptr<Session> session) ABSL_LOCKS_EXCLUDED(mutex_);
  // In the order in which they were opened.
  std::vector<std::shared_ptr<Session>> List() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Made if there is none yet.
  std::shared_ptr<User> GetUser(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);
  // Everybody who has opened a session, or taken a large answer, since the daemon started.
  std::vector<std::shared_ptr<User>> ListUsers() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Asks for the user's limits again; they hold from now on.
  void UpdateLimits(const std::string& user) ABSL_LOCKS_EXCLUDED(mutex_);

  // Closes the sessions whose lease has run out; returns how many.
  int CloseExpired() ABSL_LOCKS_EXCLUDED(mutex_);
  // No new sessions; Open fails with `reason`.
  void Refuse(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);
  void CloseAll(const absl::Status& reason) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::StatusOr<std::shared_ptr<Session>> FindToEnd(const std::string& user, bool of_anybody,
                                                     const std::string& name) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Null if there is none.
  std::shared_ptr<Session> Lookup(const std::string& id) const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::shared_ptr<Session>> Add(const std::string& user, ClientInfo client,
                                               absl::Duration lease, const std::string& device,
                                               fairness::Priority priority,
                                               absl::Duration snapshot_interval)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<runtime::ManagedDevice*> Choose(const std::string& name) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Made when it is first asked for.
  const std::shared_ptr<User>& UserOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // User::Explain.
  absl::Status Explained(const std::string& user, const absl::Status& status) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TooManySessions() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static absl::Status CheckRoomFor(const SessionImage& image, runtime::ManagedDevice& device);
  absl::Status CheckRoomFor(const User& user) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  SessionNames names_;
  EndedSessions ended_;
  const Options options_;
  const std::vector<runtime::ManagedDevice*> devices_;
  AbsentSessions* absent_ = nullptr;
  // No session's lock is taken with it: whoever is slow in one session would hold up everybody.
  mutable absl::Mutex mutex_;
  absl::Status refusal_ ABSL_GUARDED_BY(mutex_);
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<std::string, std::shared_ptr<Session>> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<User>> users_ ABSL_GUARDED_BY(mutex_);
  // Ids of those that were kept, no more than the earlier daemon had, and their users: if one is
  // not there any more, it has ended.
  std::map<std::string, std::string> adopted_ ABSL_GUARDED_BY(mutex_);
};

// A session's id as its client knows it: that of Session::identity, and how often it was taken
// over.
struct FullId {
  std::string id;
  uint64_t generation = 0;
};
FullId Split(const std::string& id);

// 128 bits of getrandom(2) in hexadecimal.
std::string RandomId();

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_REGISTRY_H_
