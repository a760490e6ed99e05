// Makes checkpoints from the state of a session.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_CAPTURE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_CAPTURE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

// Returns true if each executed operation either was answered or can be done again, and none is
// between the two. Requires: the session's lock is held, and so for Capture.
bool IsSettled(const SessionState& session, uint64_t executed);
// Makes a checkpoint of the state after the operation `executed`, without blobs and log.
// FAILED_PRECONDITION: the state cannot be known.
absl::StatusOr<Checkpoint> Capture(const SessionState& session, uint64_t executed);
void AddBlobs(const SessionState& session, Checkpoint* checkpoint);

// For a daemon that stops. From here on nothing is answered and requests fail with `reason`;
// Session::Close ends the session. Requires: `reason` is not OK; Session::Pause was called; the
// devices take nothing more from their queues, and are idle or hang. Waits at most `timeout` for a
// run that is just ending. FAILED_PRECONDITION, without changes, if the state cannot be known.
absl::StatusOr<Checkpoint> Freeze(SessionState& session, const absl::Status& reason,
                                  absl::Duration timeout);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_CAPTURE_H_
