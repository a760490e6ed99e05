// Why sessions have ended whose clients may still ask for them.
#ifndef KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_
#define KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_

#include <cstddef>
#include <deque>
#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace kiln::sessions {

// NOT_FOUND, SESSION_LOST: a session that could not be kept or brought back. The message says
// `what` failed and why, as far as users can do something about it; the detail "cause" has the
// reason.
absl::Status LostBecause(absl::string_view what, const absl::Status& why);

// The last 1,024, and 64 of one user: earlier ones give way, and a client that asks for one is told
// no more than that it is unknown. They outlive the daemon where they are loaded and saved.
// Thread-safe; calls nothing.
class EndedSessions {
 public:
  static constexpr size_t kMost = 1024;
  static constexpr size_t kMostOfAUser = 64;

  // `id` as in SessionIdentity. The message is cut to errors::WithBoundedMessage.
  void Remember(const std::string& id, const std::string& user, const absl::Status& why)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // OK if nothing is known of it, or it was not this user's.
  absl::Status Find(const std::string& id, const std::string& user) const
      ABSL_LOCKS_EXCLUDED(mutex_);
  // From a file of Save's; none if there is no file. The errors of state::ReadLines: then nothing
  // is remembered.
  absl::Status Load(const std::string& path) ABSL_LOCKS_EXCLUDED(mutex_);
  // The errors of state::WriteLines.
  absl::Status Save(const std::string& path) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Entry {
    std::string digest;  // of the id, which is a secret
    std::string user;
    absl::Status why;
  };
  void Add(Entry entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static std::string ToLine(const Entry& entry);
  static std::optional<Entry> FromLine(const std::string& line);

  mutable absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the earliest first
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_
