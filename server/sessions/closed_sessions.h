// Remembers why sessions were closed, for clients that still ask for them.
#ifndef KILN_SERVER_SESSIONS_CLOSED_SESSIONS_H_
#define KILN_SERVER_SESSIONS_CLOSED_SESSIONS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace kiln::sessions {

// Returns NOT_FOUND, reason SESSION_LOST, for a session that could not be saved or restored. The
// message says that `what` failed and why, as far as users can act on it; the detail "cause" has
// the full reason.
absl::Status LostBecause(absl::string_view what, const absl::Status& why);

// Holds the last 1,024 sessions, and at most 64 per user. The earliest are forgotten; a client that
// asks for one of those only hears that it is unknown. Entries survive a restart of the daemon
// through Save and Load. Thread-safe; calls no other module with its lock held.
class ClosedSessions {
 public:
  static constexpr size_t kEntriesMax = 1024;
  static constexpr size_t kUserEntriesMax = 64;

  // `id` is SessionIdentity::id. The message is cut by errors::WithBoundedMessage. Requires: `why`
  // is not OK.
  void Remember(const std::string& id, const std::string& user, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns why the session was closed; OK if it is not known or belongs to another user.
  absl::Status Find(const std::string& id, const std::string& user) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Reads a file that Save wrote; a missing file is an empty list. Returns the errors of
  // state::ReadLines; nothing is remembered then.
  absl::Status Load(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the errors of state::WriteLines.
  absl::Status Save(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string digest;  // of the session's id, which is secret
    std::string user;
    absl::Status why;
  };
  void Add(Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // No session is there twice, each has a reason, and there are not too many of all or of a user.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  static std::string ToLine(const Entry& entry);
  static std::optional<Entry> FromLine(const std::string& line);

  mutable absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the earliest first
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CLOSED_SESSIONS_H_
