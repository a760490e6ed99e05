// Brings back the sessions that an earlier daemon has kept, one after another on a thread of its
// own, while the daemon serves already. Who asks for one that is not there yet is told to come
// back, and it is next. Those with a journal, which has to be done again, come back beside that:
// one of each user at a time, so that nobody waits for another's work.
#ifndef KILN_SERVER_SESSIONS_RESTORER_H_
#define KILN_SERVER_SESSIONS_RESTORER_H_

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
#include "server/sessions/kept_sessions.h"
#include "server/sessions/patience.h"
#include "server/sessions/registry.h"

namespace kiln::sessions {

// Thread-safe.
class Restorer final : public AbsentSessions {
 public:
  // Both outlive this. Nothing happens before Start. A session whose device has not taken a piece
  // of a tensor after `copy_patience` is tried again, after the others.
  Restorer(KeptSessions& kept, Registry& registry, std::function<absl::Time()> steady_now,
           std::function<bool(const std::string& user)> is_revoked, absl::Duration copy_patience);
  ~Restorer() override { Stop(); }

  // Reads what there is; sessions number on behind them.
  void Start() ABSL_LOCKS_EXCLUDED(mutex_);
  // Finishes the one under way, unless its device hangs. The others stay where they are, for a
  // later daemon.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);
  // Once Start has listed them.
  bool KnowsAll() const override ABSL_LOCKS_EXCLUDED(mutex_);
  // Restarting if the session is one of those that are not there yet.
  absl::Status Ask(const std::string& user, const std::string& id) override
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status Ask(int64_t number, const std::string* user) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Their files go. The one under way ends as soon as it is back, and does not count.
  int DropAllOf(const std::string& user) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Waiting {
    KeptSessions::Kept kept;
    absl::Time expires;
    std::string why;  // it did not come back when it was tried last
  };

  // What a thread does: it restores sessions with journals, or the others.
  enum class Kind { kImage, kJournal };
  static Kind KindOf(const Waiting& waiting) {
    return waiting.kept.image.journal == 0 ? Kind::kImage : Kind::kJournal;
  }
  struct UnderWay {
    std::string id;
    int64_t number = 0;
    std::string user;
    Kind kind = Kind::kImage;
    bool is_dropped = false;
    std::shared_ptr<Patience> patience{};
  };

  absl::Status AskFor(std::deque<std::unique_ptr<Waiting>>::iterator wanted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ClaimName(const KeptSessions::Kept& kept);
  // Its file and its name go.
  void Drop(const KeptSessions::Kept& kept);
  void Loop(Kind kind) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes the next, once its user has no other under way; null if there is none or this stops.
  std::unique_ptr<Waiting> Take(Kind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Before another attempt.
  void Rest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayBegin(const Waiting& waiting) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Whether one that did not come back is tried again; if so, and why is new, the log says it.
  bool Waits(const Waiting& waiting, const absl::Status& status) const;
  // It never comes back, and the log says so; its client hears why.
  void Lose(const KeptSessions::Kept& kept, const absl::Status& why);
  // OK: it is the registry's. DATA_LOSS: it will never be. Others: it may be, later.
  absl::Status Restore(const KeptSessions::Kept& kept, Patience& patience)
      ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TryToRestore(const KeptSessions::Kept& kept, Patience& patience)
      ABSL_LOCKS_EXCLUDED(mutex_);

  KeptSessions& kept_;
  Registry& registry_;
  const std::function<absl::Time()> steady_now_;
  const std::function<bool(const std::string&)> is_revoked_;
  const absl::Duration copy_patience_;
  mutable absl::Mutex mutex_;
  absl::CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool knows_all_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<UnderWay> under_way_ ABSL_GUARDED_BY(mutex_);  // one for each thread at most
  std::deque<std::unique_ptr<Waiting>> waiting_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_RESTORER_H_
