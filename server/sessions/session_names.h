// The names under which users find their sessions again.
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

// OK for 1 to 64 letters, digits and "._-"; else INVALID_ARGUMENT, BAD_NAME, which says of `what`
// it is the name.
absl::Status CheckName(absl::string_view what, absl::string_view name);

// At most one name for each session. Thread-safe; calls nothing.
class SessionNames {
 public:
  // From here on `session` (its number) has this name of `user`'s, and none that it had before.
  // ALREADY_EXISTS, NAME_TAKEN: another one has it.
  absl::Status Claim(const std::string& user, const std::string& name, int64_t session)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The session has ended.
  void Release(int64_t session) ABSL_LOCKS_EXCLUDED(mutex_);
  // 0 if the user has none of that name.
  int64_t Find(const std::string& user, const std::string& name) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Name = std::pair<std::string, std::string>;  // the user's and the session's

  mutable absl::Mutex mutex_;
  std::map<Name, int64_t> sessions_ ABSL_GUARDED_BY(mutex_);
  std::map<int64_t, Name> names_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_NAMES_H_
