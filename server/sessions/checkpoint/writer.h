// Takes checkpoints of running sessions when they are due, on its own thread.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_WRITER_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_WRITER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/sessions/checkpoint/copy_deadline.h"
#include "server/sessions/session.h"

namespace kiln::sessions {

// Thread-safe. The thread sleeps while there is no session.
class CheckpointWriter {
 public:
  // A checkpoint is cancelled if its device has not copied a piece of a tensor after
  // `copy_timeout`.
  explicit CheckpointWriter(absl::Duration copy_timeout) : copy_timeout_(copy_timeout) {}
  ~CheckpointWriter() { Stop(); }

  // Takes the first checkpoint of a new session, then calls Add. Requires: RecorderOf(session).
  void Begin(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Starts taking checkpoints of the session. Logs when it has none any more, and why one failed.
  // Null counts as a session that has ended. Requires: otherwise RecorderOf(session).
  void Add(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the checkpoint that is being written; no other is begun.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the thread sleeps until the next Add because all sessions have ended. The thread checks
  // a session immediately after Add, then every 200 ms.
  bool IsIdle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Watched {
    std::weak_ptr<Session> session;
    std::string said;  // why its last checkpoint failed
  };

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Added sessions have a thread, which is not idle.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Takes the session's checkpoint if it is due. Returns false if the session has ended.
  static bool Look(Watched& watched, CopyDeadline& deadline);

  const absl::Duration copy_timeout_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool idle_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<Watched> added_ ABSL_GUARDED_BY(mutex_);
  // Of the checkpoint being written; shared with Stop.
  std::shared_ptr<CopyDeadline> deadline_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_ ABSL_GUARDED_BY(mutex_);  // once there is a session
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_WRITER_H_
