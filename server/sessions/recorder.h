// Records what a session does, so that a later daemon can restore it if this one is killed. The
// recorder of checkpoints (checkpoint/session_recorder.h) implements it.
#ifndef KILN_SERVER_SESSIONS_RECORDER_H_
#define KILN_SERVER_SESSIONS_RECORDER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace kiln::sessions {

// Requires: the session's lock is held, except where it says "without the lock".
class Recorder {
 public:
  virtual ~Recorder() = default;
  // Records an operation before any of its effects is visible. `operation` is encoded for the log.
  virtual void Executed(uint64_t sequence, absl::string_view operation) = 0;
  // The same for a Write with its bytes, which used these blobs. Without the lock: takes long.
  virtual void Wrote(uint64_t sequence, absl::string_view operation,
                     const std::vector<std::string>& blobs,
                     const std::vector<absl::string_view>& bytes) = 0;
  // A Cancel was received, and has cancelled these runs.
  virtual void Cancelled(uint64_t first, uint64_t cancel, const std::vector<uint64_t>& runs) = 0;
  virtual void TakenOver(uint64_t generation) = 0;
  // The session was parked: it has a name from here on.
  virtual void Parked() = 0;
  // Forgets that the log has these blobs, because an operation used or released them: they are
  // recorded again when they are sent again.
  virtual void ForgetBlobs(const std::vector<std::string>& names) = 0;
  // The session owns a blob, or does not own these any more. Called before the client is told,
  // without the lock.
  virtual void HoldsBlob(const std::string& name) = 0;
  virtual void DeletedBlobs(const std::vector<std::string>& names) = 0;
  // An executed operation has failed later, which the log does not have.
  virtual void FailedLate(const absl::Status& why) = 0;
  // The session is closed. Its files are removed, unless they stay for the next daemon.
  virtual void Close(bool files_stay) = 0;
  // When the last checkpoint was taken; InfinitePast while the session would not survive SIGKILL of
  // the daemon.
  virtual absl::Time checkpoint_time() const = 0;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_RECORDER_H_
