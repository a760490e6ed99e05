// Restores the sessions that an earlier daemon has saved, one after another on its own thread,
// while the daemon already serves. A client that asks for a session that is not restored yet is
// told to retry, and this session becomes the next one. Sessions with a log, which must be
// replayed, are restored on other threads: one per user at a time, so that no user waits for the
// operations of another.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_RESTORER_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_RESTORER_H_

#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/sessions/checkpoint/copy_deadline.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/checkpoint/writer.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {

// Thread-safe.
class Restorer final : public AbsentSessions {
 public:
  // Requires: `store`, `registry` and `writer` outlive this. Nothing happens before Start. A
  // session whose device has not received a piece of a tensor after `copy_timeout` is tried again,
  // after the others.
  Restorer(CheckpointStore& store, Registry& registry, CheckpointWriter& writer,
           std::function<absl::Time()> steady_now,
           std::function<bool(const std::string& user)> is_revoked, absl::Duration copy_timeout);
  ~Restorer() override { Stop(); }

  // Lists the saved sessions and starts restoring them. New sessions get higher numbers. Called
  // once.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until the sessions being restored are finished, unless a device hangs; the replay of a
  // log is aborted. The files of the others remain for a later daemon.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // True once Start has listed the sessions.
  bool KnowsAll() const override ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns Restarting if the session is not restored yet.
  absl::Status Ask(const std::string& user, const std::string& id) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Ask(int64_t number, const std::string* user) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Removes the files of the waiting sessions. A session being restored is closed as soon as it is
  // back, and is not counted.
  int CloseAllOf(const std::string& user) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    StoredSession stored;
    absl::Time expires;
    std::string why;  // why the last attempt failed; empty if there was none
  };

  // A thread restores either sessions with logs or the others.
  enum class Kind { kCheckpoint, kLog };
  static Kind KindOf(const Waiting& waiting) {
    return waiting.stored.checkpoint.log == 0 ? Kind::kCheckpoint : Kind::kLog;
  }
  struct UnderWay {
    std::string id;
    int64_t number = 0;
    std::string user;
    Kind kind = Kind::kCheckpoint;
    bool is_dropped = false;
    std::shared_ptr<CopyDeadline> deadline{};
  };

  absl::Status AskFor(std::deque<std::unique_ptr<Waiting>>::iterator wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClaimName(const StoredSession& stored);
  // Removes the session's files and releases its name.
  void Drop(const StoredSession& stored);
  void Loop(Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // No session waits or is under way twice, and no two of a user are under way with their logs.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  size_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return waiting_.size() + under_way_.size();
  }
  // Takes the next session, once MayBegin; null if there is none or the restorer stops.
  std::unique_ptr<Waiting> Take(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Pauses before another attempt.
  void Rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Waiting& waiting) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns whether a failed restoration is tried again. If so, logs the reason if it is new.
  bool Waits(const Waiting& waiting, const absl::Status& status) const;
  // Gives up the session: logs the reason and remembers it for the client.
  void Lose(const StoredSession& stored, const absl::Status& why);
  // OK: the registry has the session. DATA_LOSS: it can never be restored. Other errors: it may be
  // restored later.
  absl::Status Restore(const StoredSession& stored, CopyDeadline& deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TryToRestore(const StoredSession& stored, CopyDeadline& deadline)
      ABSL_LOCKS_EXCLUDED(mutex_);

  CheckpointStore& store_;
  Registry& registry_;
  CheckpointWriter& writer_;
  const std::function<absl::Time()> steady_now_;
  const std::function<bool(const std::string&)> is_revoked_;
  const absl::Duration copy_timeout_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool knows_all_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<UnderWay> under_way_ ABSL_GUARDED_BY(mutex_);  // at most one per thread
  std::deque<std::unique_ptr<Waiting>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_RESTORER_H_
