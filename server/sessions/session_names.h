// The names by which users find their parked sessions.
#ifndef KILN_SERVER_SESSIONS_SESSION_NAMES_H_
#define KILN_SERVER_SESSIONS_SESSION_NAMES_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"

namespace kiln::sessions {

// OK for 1 to 64 letters, digits and "._-"; otherwise INVALID_ARGUMENT, reason BAD_NAME, with a
// message that calls it the name of `what`.
absl::Status CheckName(absl::string_view what, absl::string_view name);

// At most one name for each session. Thread-safe; calls no other module with its lock held.
class SessionNames {
 public:
  // Gives the session with number `session` this name of `user`'s, in place of an earlier one.
  // ALREADY_EXISTS, reason NAME_TAKEN: another session has it. Requires: `name` is not empty, and
  // `session` is above 0.
  absl::Status Claim(const std::string& user, const std::string& name, int64_t session)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Drops the name of a session that has ended.
  void Release(int64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of the session; 0 if the user has none of that name.
  int64_t Find(const std::string& user, const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Name = std::pair<std::string, std::string>;  // the user's name and the session's

  // The maps are inverse to each other.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);

  mutable absl::Mutex mutex_;
  std::map<Name, int64_t> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Name> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_NAMES_H_
