// Why sessions have ended whose clients may still ask for them.
#ifndef KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_
#define KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_

#include <cstddef>
#include <deque>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"

namespace kiln::sessions {

// The last 1,024, and 64 of one user: earlier ones give way, and a client that asks for one is told
// no more than that it is unknown. Thread-safe; calls nothing.
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

 private:
  struct Entry {
    std::string digest;  // of the id, which is a secret
    std::string user;
    absl::Status why;
  };

  mutable absl::Mutex mutex_;
  std::deque<Entry> entries_ ABSL_GUARDED_BY(mutex_);  // the earliest first
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_ENDED_SESSIONS_H_
