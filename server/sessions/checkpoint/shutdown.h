// Saves the sessions of a stopping daemon for the next one.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_SHUTDOWN_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_SHUTDOWN_H_

#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/runtime/device/managed_device.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {

struct ShutdownOptions {
  CheckpointStore* store = nullptr;
  Registry* registry = nullptr;  // takes no new sessions
  std::vector<runtime::ManagedDevice*> devices;
  absl::Status restarting;      // the status that clients of saved sessions get
  absl::Duration copy_timeout;  // for copying a piece of a tensor from a device
  std::function<absl::Time()> steady_now;
};

// Pauses all sessions, waits until `deadline` for the devices to finish, writes the sessions to
// their folder and closes them. A session that cannot be saved is closed as lost: the reason is
// logged, and its client gets it, also from the next daemon. Called once, while sessions still
// accept operations.
void SaveSessionsForRestart(const ShutdownOptions& options, absl::Time deadline);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_SHUTDOWN_H_
