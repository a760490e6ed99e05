// Identifies a session, its client and its user, from the opening to the end, also in later
// daemons.
#ifndef KILN_SERVER_SESSIONS_IDENTITY_H_
#define KILN_SERVER_SESSIONS_IDENTITY_H_

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "server/fairness/fair_queue.h"

namespace kiln::sessions {

// The client's own description of itself.
struct ClientInfo {
  std::string name;
  std::string version;
  std::string description;
  uint32_t op_set_version = 0;
  bool is_local = false;  // on this machine: a lost connection means that the process has ended
};

struct SessionIdentity {
  int64_t number = 0;
  std::string id;    // secret
  std::string name;  // "s3"
  ClientInfo client;
  absl::Duration lease;
  // The lease after a lost connection, if shorter than `lease`.
  absl::Duration away_lease = absl::InfiniteDuration();
  fairness::Priority priority = fairness::Priority::kInteractive;
  absl::Time opened;
  // The interval at which checkpoints of the running session are taken, so that it survives SIGKILL
  // of the daemon; zero: never.
  absl::Duration checkpoint_interval;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_IDENTITY_H_
