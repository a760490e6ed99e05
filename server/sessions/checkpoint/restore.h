// Restores a session from its checkpoint and its log.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_RESTORE_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_RESTORE_H_

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/checkpoint/log.h"
#include "server/sessions/checkpoint/log_record.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

// For a new session that only the caller knows: restores the state of the checkpoint, but executes
// nothing before Session::StartExecuting. Limits of its user, of host memory and of uploads are not
// enforced: what existed remains. Returns the errors of device memory, of copies and of `bytes`;
// the session cannot be used after an error.
absl::Status Restore(SessionState& session, std::shared_ptr<const Checkpoint> checkpoint,
                     ByteSource& bytes, CopyDeadline& deadline);
// Adds a blob that the session owns.
absl::Status RestoreBlob(SessionState& session, const std::string& name, std::string data);

// Called after Restore and before the first client: does what StartExecuting does, then executes
// the operations of the log. DATA_LOSS: the log is damaged, or an operation does not have the
// recorded outcome. CANCELLED: `gives_up` returned true. Other errors: may be tried again with
// another session.
absl::Status Replay(SessionState& session, SessionLogReader& log, const LogSummary& summary,
                    const std::function<bool()>& gives_up);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_RESTORE_H_
