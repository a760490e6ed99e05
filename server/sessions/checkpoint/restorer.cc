#include "server/sessions/checkpoint/restorer.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/clock/clock.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/sessions/checkpoint/log_record.h"
#include "server/sessions/checkpoint/restore.h"
#include "server/sessions/checkpoint/session_recorder.h"

namespace kiln::sessions {
namespace {

// The pause after a failed attempt, for example for lack of memory.
constexpr absl::Duration kPause = absl::Seconds(1);
// The number of users whose logs are replayed concurrently.
constexpr size_t kLogsAtOnce = 16;
// A session is lost after this many daemons have ended while they restored it, so that the others
// can be restored.
constexpr int kAttemptsMax = 5;

absl::Status BeingRestored() { return Restarting("the session is being restored; attach again"); }

}  // namespace

Restorer::Restorer(CheckpointStore& store, Registry& registry, CheckpointWriter& writer,
                   std::function<absl::Time()> steady_now,
                   std::function<bool(const std::string&)> is_revoked, absl::Duration copy_timeout)
    : store_(store),
      registry_(registry),
      writer_(writer),
      steady_now_(std::move(steady_now)),
      is_revoked_(std::move(is_revoked)),
      copy_timeout_(copy_timeout) {}

void Restorer::Start() {
  KILN_CHECK(threads_.empty());
  std::deque<std::unique_ptr<Waiting>> all;
  for (StoredSession& stored : store_.List()) {
    const Checkpoint& checkpoint = stored.checkpoint;
    registry_.CountFrom(checkpoint.identity.number + 1);
    // Revoked while the previous daemon was saving the session, or by a daemon that did not know of
    // it.
    if (is_revoked_(checkpoint.user)) {
      Lose(stored, absl::UnauthenticatedError("its user was revoked"));
      continue;
    }
    ClaimName(stored);
    auto waiting = std::make_unique<Waiting>();
    waiting->expires = steady_now_() + stored.checkpoint.lease_then();
    waiting->stored = std::move(stored);
    all.push_back(std::move(waiting));
  }
  // The oldest first, because they had their memory first.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a->stored.checkpoint.identity.number < b->stored.checkpoint.identity.number;
  });
  std::set<std::string> users;  // with logs
  for (const auto& waiting : all)
    if (KindOf(*waiting) == Kind::kLog) users.insert(waiting->stored.checkpoint.user);
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK(!knows_all_ && waiting_.empty());
    waiting_ = std::move(all);
    knows_all_ = true;
    KILN_VALIDATE(*this, entries());
  }
  threads_.emplace_back([this] { Loop(Kind::kCheckpoint); });
  for (size_t i = 0; i < std::min(users.size(), kLogsAtOnce); ++i)
    threads_.emplace_back([this] { Loop(Kind::kLog); });
}

void Restorer::ClaimName(const StoredSession& stored) {
  if (stored.name.empty()) return;
  const Checkpoint& checkpoint = stored.checkpoint;
  const absl::Status status =
      registry_.names().Claim(checkpoint.user, stored.name, checkpoint.identity.number);
  if (!status.ok())
    log::Warning("name_lost", {{"session", checkpoint.identity.name}, {"why", status.ToString()}});
}

void Restorer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const UnderWay& under_way : under_way_) under_way.deadline->Cancel();
    changed_.SignalAll();
  }
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

bool Restorer::KnowsAll() const {
  absl::MutexLock lock(&mutex_);
  return knows_all_;
}

absl::Status Restorer::Ask(const std::string& user, const std::string& id) {
  absl::MutexLock lock(&mutex_);
  for (const UnderWay& under_way : under_way_)
    if (id == under_way.id && user == under_way.user) return BeingRestored();
  return AskFor(std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
    return waiting->stored.checkpoint.identity.id == id && waiting->stored.checkpoint.user == user;
  }));
}

absl::Status Restorer::Ask(int64_t number, const std::string* user) {
  const auto is_meant = [&](int64_t other, const std::string& owner) {
    return other == number && (user == nullptr || *user == owner);
  };
  absl::MutexLock lock(&mutex_);
  for (const UnderWay& under_way : under_way_)
    if (is_meant(under_way.number, under_way.user)) return BeingRestored();
  return AskFor(std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
    return is_meant(waiting->stored.checkpoint.identity.number, waiting->stored.checkpoint.user);
  }));
}

absl::Status Restorer::AskFor(std::deque<std::unique_ptr<Waiting>>::iterator wanted) {
  if (wanted == waiting_.end()) return absl::OkStatus();
  auto next = std::move(*wanted);
  waiting_.erase(wanted);
  const std::string why = next->why;
  waiting_.push_front(std::move(next));
  KILN_VALIDATE(*this, entries());
  if (why.empty()) return Restarting("the session is waiting to be restored; attach again");
  return Restarting(
      absl::StrCat("the session cannot be restored yet and will be tried again: ", why));
}

void Restorer::Drop(const StoredSession& stored) {
  store_.Remove(stored).IgnoreError();
  registry_.names().Release(stored.checkpoint.identity.number);
}

int Restorer::CloseAllOf(const std::string& user) {
  absl::MutexLock lock(&mutex_);
  for (UnderWay& under_way : under_way_)
    if (under_way.user == user) under_way.is_dropped = true;
  return static_cast<int>(std::erase_if(waiting_, [&](const std::unique_ptr<Waiting>& waiting) {
    if (waiting->stored.checkpoint.user != user) return false;
    Drop(waiting->stored);
    return true;
  }));
}

bool Restorer::MayBegin(const Waiting& waiting) const {
  if (KindOf(waiting) == Kind::kCheckpoint) return true;
  return std::none_of(under_way_.begin(), under_way_.end(), [&](const UnderWay& other) {
    return other.kind == Kind::kLog && other.user == waiting.stored.checkpoint.user;
  });
}

std::unique_ptr<Restorer::Waiting> Restorer::Take(Kind kind) {
  while (!stopping_) {
    bool any = false;
    for (auto next = waiting_.begin(); next != waiting_.end(); ++next) {
      if (KindOf(**next) != kind) continue;
      any = true;
      if (!MayBegin(**next)) continue;
      auto taken = std::move(*next);
      waiting_.erase(next);
      return taken;
    }
    if (!any) return nullptr;
    changed_.Wait(&mutex_);
  }
  return nullptr;
}

void Restorer::Loop(Kind kind) {
  absl::MutexLock lock(&mutex_);
  while (auto next = Take(kind)) {
    const Checkpoint& checkpoint = next->stored.checkpoint;
    const auto deadline = std::make_shared<CopyDeadline>(copy_timeout_);
    const auto under_way =
        under_way_.insert(under_way_.end(), {checkpoint.identity.id, checkpoint.identity.number,
                                             checkpoint.user, kind,
                                             /*is_dropped=*/false, deadline});
    KILN_VALIDATE(*this, entries());
    mutex_.Unlock();
    const absl::Status status = Restore(next->stored, *deadline);
    const bool waits = !status.ok() && Waits(*next, status);
    mutex_.Lock();
    // In one critical section: a client that asks finds the session being restored, waiting or
    // restored.
    const UnderWay ended = std::move(*under_way);
    under_way_.erase(under_way);
    KILN_VALIDATE(*this, entries());
    changed_.SignalAll();
    if (waits && !ended.is_dropped) {
      next->why = std::string(status.message());
      waiting_.push_back(std::move(next));
      KILN_VALIDATE(*this, entries());
      Rest();
      continue;
    }
    if (status.ok() && !ended.is_dropped) continue;
    mutex_.Unlock();
    if (status.ok()) {
      registry_.Close(ended.id).IgnoreError();
    } else {
      Lose(next->stored, status);
    }
    mutex_.Lock();
  }
}

void Restorer::Validate() const {
  KILN_CHECK(knows_all_ || entries() == 0);
  std::set<std::tuple<absl::string_view, absl::string_view, int64_t>> sessions;
  std::set<absl::string_view> users;  // whose logs are replayed
  int without_log = 0;
  for (const auto& waiting : waiting_) {
    KILN_CHECK(waiting != nullptr);
    const Checkpoint& checkpoint = waiting->stored.checkpoint;
    const bool is_new =
        sessions.emplace(checkpoint.user, checkpoint.identity.id, checkpoint.identity.number)
            .second;
    KILN_CHECK(is_new) << checkpoint.identity.name << " waits twice";
  }
  for (const UnderWay& under_way : under_way_) {
    KILN_CHECK(under_way.deadline != nullptr) << under_way.number;
    const bool is_new = sessions.emplace(under_way.user, under_way.id, under_way.number).second;
    KILN_CHECK(is_new) << "session " << under_way.number << " is restored while it waits";
    if (under_way.kind == Kind::kCheckpoint) {
      ++without_log;
    } else {
      const bool is_only = users.insert(under_way.user).second;
      KILN_CHECK(is_only) << "two logs of a user are replayed at a time";
    }
  }
  KILN_CHECK_LE(without_log, 1);
  KILN_CHECK_LE(users.size(), kLogsAtOnce);
}

void Restorer::Rest() {
  const absl::Time end = SteadyNow() + kPause;
  for (absl::Time now = SteadyNow(); !stopping_ && now < end; now = SteadyNow())
    changed_.WaitWithTimeout(&mutex_, end - now);
}

bool Restorer::Waits(const Waiting& waiting, const absl::Status& status) const {
  if (absl::IsDataLoss(status) || steady_now_() >= waiting.expires) return false;
  if (waiting.why != status.message()) {
    log::Warning("session_waits", {{"session", waiting.stored.checkpoint.identity.name},
                                   {"why", std::string(status.message())}});
  }
  return true;
}

void Restorer::Lose(const StoredSession& stored, const absl::Status& why) {
  const Checkpoint& checkpoint = stored.checkpoint;
  registry_.closed().Remember(checkpoint.identity.id, checkpoint.user,
                              LostBecause("the daemon could not restore it", why));
  Drop(stored);
  log::Error("session_lost", {{"session", checkpoint.identity.name},
                              {"why", std::string(why.message())},
                              {"lost", "its tensors and programs; its client gets an error"}});
}

absl::Status Restorer::Restore(const StoredSession& stored, CopyDeadline& deadline) {
  // A session without a log is removed from the disk before it executes anything, so a crash
  // cannot repeat.
  if (stored.checkpoint.log == 0) return TryToRestore(stored, deadline);
  if (CheckpointStore::CountAttempt(stored) > kAttemptsMax) {
    return absl::DataLossError(
        absl::StrCat(kAttemptsMax, " daemons ended while they repeated the session's operations"));
  }
  const absl::Status status = TryToRestore(stored, deadline);
  CheckpointStore::ForgetAttempts(stored);
  return status;
}

absl::Status Restorer::TryToRestore(const StoredSession& stored, CopyDeadline& deadline) {
  const Checkpoint& saved = stored.checkpoint;
  auto reader = store_.Read(stored);
  if (!reader.ok()) return reader.status();
  SessionLogReader log = store_.ReadLog(stored);
  if (saved.is_live && stored.log.empty())
    return absl::DataLossError("the operation log since its checkpoint is missing");
  const auto summary = Summarize(log);
  if (!summary.ok()) return summary.status();
  std::vector<DeviceNeed> needs;
  for (const std::string& device : saved.DeviceNames())
    needs.push_back({device, saved.bytes_on(device)});
  auto session = registry_.Make(saved.identity, saved.user, needs);
  if (!session.ok()) return session.status();
  SessionState& state = (*session)->state();
  auto checkpoint = std::make_shared<Checkpoint>(saved);
  CancelPending(summary->cancelled, checkpoint.get());
  absl::Status status = sessions::Restore(state, checkpoint, **reader, deadline);
  // Only Finish verifies the bytes.
  if (status.ok()) status = (*reader)->Finish();
  const bool has_more = summary->records > 0 || !saved.pending.empty();
  if (status.ok() && saved.log != 0 && has_more) {
    SessionLogReader again = store_.ReadLog(stored);
    status = Replay(state, again, *summary, [this] {
      absl::MutexLock lock(&mutex_);
      return stopping_;
    });
  }
  SessionRecorder* const recorder = RecorderOf(state);
  if (saved.log != 0) {
    // The file remains, because its log is continued.
    if (status.ok() && recorder != nullptr) recorder->Continue(saved, log);
  } else if (status.ok()) {
    // From here on the file is out of date, so it must not reappear after a crash.
    status = store_.Remove(stored);
  }
  if (!status.ok()) {
    (*session)->Close(status);
    ClaimName(stored);
    return status;
  }
  if (recorder != nullptr) writer_.Add(*session);
  registry_.Adopt(*session);
  (*session)->StartExecuting();
  log::Info("session_restored", {{"session", saved.identity.name},
                                 {"device", saved.device},
                                 {"bytes", absl::StrCat(saved.data_bytes())},
                                 {"operations", absl::StrCat(saved.pending.size())},
                                 {"journal", absl::StrCat(summary->records)}});
  return absl::OkStatus();
}

}  // namespace kiln::sessions
