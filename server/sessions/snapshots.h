// Takes images of the protected sessions when they are due, on its own thread.
#ifndef KILN_SERVER_SESSIONS_SNAPSHOTS_H_
#define KILN_SERVER_SESSIONS_SNAPSHOTS_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/sessions/patience.h"
#include "server/sessions/session.h"

namespace kiln::sessions {

// Thread-safe. The thread sleeps while there is no session.
class Snapshots {
 public:
  // An image is cancelled if its device has not copied a piece of a tensor after `copy_patience`.
  explicit Snapshots(absl::Duration copy_patience) : copy_patience_(copy_patience) {}
  ~Snapshots() { Stop(); }

  // Starts taking images of `session`. Logs when it is not protected any more, and why an image
  // failed.
  void Add(const std::shared_ptr<Session>& session) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the image that is being written; no other is begun.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // True if the thread sleeps until the next Add because all sessions have ended. The thread checks
  // a session immediately after Add, then every 200 ms.
  bool IsIdle() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Looked {
    std::weak_ptr<Session> session;
    std::string said;  // why its last image failed
  };

  void Loop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the session's image if it is due. Returns false if the session has ended.
  static bool Look(Looked& looked, Patience& patience);

  const absl::Duration copy_patience_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool idle_ ABSL_GUARDED_BY(mutex_) = true;
  std::vector<Looked> added_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<Patience> patience_ ABSL_GUARDED_BY(mutex_);  // of the image being written
  std::thread thread_ ABSL_GUARDED_BY(mutex_);                  // once there is a session
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SNAPSHOTS_H_
