// How a daemon that stops keeps its sessions for the next one.
#ifndef KILN_SERVER_SESSIONS_KEEP_ALL_H_
#define KILN_SERVER_SESSIONS_KEEP_ALL_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/runtime/managed_device.h"
#include "server/sessions/kept_sessions.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {

struct KeepAllOptions {
  KeptSessions* kept = nullptr;
  Registry* registry = nullptr;  // takes no new session any more
  std::vector<runtime::ManagedDevice*> devices;
  absl::Status restarting;       // what clients of kept sessions hear
  absl::Duration copy_patience;  // for a piece of a tensor on its way from a device
  std::function<absl::Time()> steady_now;
};

// Halts all sessions, lets what is on the devices end until `deadline`, writes the sessions to
// their folder and closes them. One that cannot be kept is closed as lost: the log says why, and
// its client hears it, also from the next daemon. Called once, while operations are still taken.
void KeepAll(const KeepAllOptions& options, absl::Time deadline);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_KEEP_ALL_H_
