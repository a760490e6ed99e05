#include "server/sessions/restorer.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/clock/clock.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// The pause after a failed attempt, for example for lack of memory.
constexpr absl::Duration kPause = absl::Seconds(1);
// The number of users whose journals are replayed concurrently.
constexpr size_t kJournalsAtOnce = 16;
// A session is lost after this many daemons have ended while they restored it, so that the others
// can be restored.
constexpr int kAttemptsMax = 5;

absl::Status BeingRestored() { return Restarting("the session is being restored; attach again"); }

}  // namespace

Restorer::Restorer(KeptSessions& kept, Registry& registry, std::function<absl::Time()> steady_now,
                   std::function<bool(const std::string&)> is_revoked, absl::Duration copy_patience)
    : kept_(kept),
      registry_(registry),
      steady_now_(std::move(steady_now)),
      is_revoked_(std::move(is_revoked)),
      copy_patience_(copy_patience) {}

void Restorer::Start() {
  std::deque<std::unique_ptr<Waiting>> all;
  for (KeptSessions::Kept& kept : kept_.List()) {
    const SessionImage& image = kept.image;
    registry_.CountFrom(image.identity.number + 1);
    // Revoked while the previous daemon was saving the session, or by a daemon that did not know of
    // it.
    if (is_revoked_(image.user)) {
      Lose(kept, absl::UnauthenticatedError("its user was revoked"));
      continue;
    }
    ClaimName(kept);
    auto waiting = std::make_unique<Waiting>();
    waiting->expires = steady_now_() + kept.image.lease_then();
    waiting->kept = std::move(kept);
    all.push_back(std::move(waiting));
  }
  // The oldest first, because they had their memory first.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a->kept.image.identity.number < b->kept.image.identity.number;
  });
  std::set<std::string> users;  // with journals
  for (const auto& waiting : all)
    if (KindOf(*waiting) == Kind::kJournal) users.insert(waiting->kept.image.user);
  {
    absl::MutexLock lock(&mutex_);
    waiting_ = std::move(all);
    knows_all_ = true;
  }
  threads_.emplace_back([this] { Loop(Kind::kImage); });
  for (size_t i = 0; i < std::min(users.size(), kJournalsAtOnce); ++i)
    threads_.emplace_back([this] { Loop(Kind::kJournal); });
}

void Restorer::ClaimName(const KeptSessions::Kept& kept) {
  if (kept.name.empty()) return;
  const SessionImage& image = kept.image;
  const absl::Status status = registry_.names().Claim(image.user, kept.name, image.identity.number);
  if (!status.ok())
    log::Warning("name_lost", {{"session", image.identity.name}, {"why", status.ToString()}});
}

void Restorer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    for (const UnderWay& under_way : under_way_) under_way.patience->GiveUp();
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
    return waiting->kept.image.identity.id == id && waiting->kept.image.user == user;
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
    return is_meant(waiting->kept.image.identity.number, waiting->kept.image.user);
  }));
}

absl::Status Restorer::AskFor(std::deque<std::unique_ptr<Waiting>>::iterator wanted) {
  if (wanted == waiting_.end()) return absl::OkStatus();
  auto next = std::move(*wanted);
  waiting_.erase(wanted);
  const std::string why = next->why;
  waiting_.push_front(std::move(next));
  if (why.empty()) return Restarting("the session is waiting to be restored; attach again");
  return Restarting(
      absl::StrCat("the session cannot be restored yet and will be tried again: ", why));
}

void Restorer::Drop(const KeptSessions::Kept& kept) {
  kept_.Remove(kept).IgnoreError();
  registry_.names().Release(kept.image.identity.number);
}

int Restorer::DropAllOf(const std::string& user) {
  absl::MutexLock lock(&mutex_);
  for (UnderWay& under_way : under_way_)
    if (under_way.user == user) under_way.is_dropped = true;
  return static_cast<int>(std::erase_if(waiting_, [&](const std::unique_ptr<Waiting>& waiting) {
    if (waiting->kept.image.user != user) return false;
    Drop(waiting->kept);
    return true;
  }));
}

bool Restorer::MayBegin(const Waiting& waiting) const {
  if (KindOf(waiting) == Kind::kImage) return true;
  return std::none_of(under_way_.begin(), under_way_.end(), [&](const UnderWay& other) {
    return other.kind == Kind::kJournal && other.user == waiting.kept.image.user;
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
    const SessionImage& image = next->kept.image;
    const auto patience = std::make_shared<Patience>(copy_patience_);
    const auto under_way = under_way_.insert(
        under_way_.end(), {image.identity.id, image.identity.number, image.user, kind,
                           /*is_dropped=*/false, patience});
    mutex_.Unlock();
    const absl::Status status = Restore(next->kept, *patience);
    const bool waits = !status.ok() && Waits(*next, status);
    mutex_.Lock();
    // In one critical section: a client that asks finds the session being restored, waiting or
    // restored.
    const UnderWay ended = std::move(*under_way);
    under_way_.erase(under_way);
    changed_.SignalAll();
    if (waits && !ended.is_dropped) {
      next->why = std::string(status.message());
      waiting_.push_back(std::move(next));
      Rest();
      continue;
    }
    if (status.ok() && !ended.is_dropped) continue;
    mutex_.Unlock();
    if (status.ok()) {
      registry_.Close(ended.id).IgnoreError();
    } else {
      Lose(next->kept, status);
    }
    mutex_.Lock();
  }
}

void Restorer::Rest() {
  const absl::Time end = SteadyNow() + kPause;
  for (absl::Time now = SteadyNow(); !stopping_ && now < end; now = SteadyNow())
    changed_.WaitWithTimeout(&mutex_, end - now);
}

bool Restorer::Waits(const Waiting& waiting, const absl::Status& status) const {
  if (absl::IsDataLoss(status) || steady_now_() >= waiting.expires) return false;
  if (waiting.why != status.message()) {
    log::Warning("session_waits", {{"session", waiting.kept.image.identity.name},
                                   {"why", std::string(status.message())}});
  }
  return true;
}

void Restorer::Lose(const KeptSessions::Kept& kept, const absl::Status& why) {
  const SessionImage& image = kept.image;
  registry_.ended().Remember(image.identity.id, image.user,
                             LostBecause("the daemon could not restore it", why));
  Drop(kept);
  log::Error("session_lost", {{"session", image.identity.name},
                              {"why", std::string(why.message())},
                              {"lost", "its tensors and programs; its client gets an error"}});
}

absl::Status Restorer::Restore(const KeptSessions::Kept& kept, Patience& patience) {
  // A session without a journal is removed from the disk before it executes anything, so a crash
  // cannot repeat.
  if (kept.image.journal == 0) return TryToRestore(kept, patience);
  if (KeptSessions::CountAttempt(kept) > kAttemptsMax) {
    return absl::DataLossError(
        absl::StrCat(kAttemptsMax, " daemons ended while they repeated the session's operations"));
  }
  const absl::Status status = TryToRestore(kept, patience);
  KeptSessions::ForgetAttempts(kept);
  return status;
}

absl::Status Restorer::TryToRestore(const KeptSessions::Kept& kept, Patience& patience) {
  auto reader = kept_.Read(kept);
  if (!reader.ok()) return reader.status();
  JournalReader journal = kept_.ReadJournal(kept);
  if (kept.image.is_live && kept.journal.empty())
    return absl::DataLossError("the operation log since its checkpoint is missing");
  const auto summary = Summarize(journal);
  if (!summary.ok()) return summary.status();
  auto session = registry_.Make(kept.image);
  if (!session.ok()) return session.status();
  auto image = std::make_shared<SessionImage>(kept.image);
  CancelPending(summary->cancelled, image.get());
  absl::Status status = (*session)->Restore(image, **reader, patience);
  // Only Finish verifies the bytes.
  if (status.ok()) status = (*reader)->Finish();
  const bool has_more = summary->records > 0 || !kept.image.pending.empty();
  if (status.ok() && kept.image.journal != 0 && has_more) {
    JournalReader again = kept_.ReadJournal(kept);
    status = (*session)->Replay(again, *summary, [this] {
      absl::MutexLock lock(&mutex_);
      return stopping_;
    });
  }
  if (kept.image.journal != 0) {
    // The file remains, because its journal is continued.
    if (status.ok()) (*session)->Protect(kept.image, journal);
  } else if (status.ok()) {
    // From here on the file is out of date, so it must not reappear after a crash.
    status = kept_.Remove(kept);
  }
  if (!status.ok()) {
    (*session)->Close(status);
    ClaimName(kept);
    return status;
  }
  registry_.Adopt(*session);
  (*session)->Resume();
  log::Info("session_restored", {{"session", kept.image.identity.name},
                                 {"device", kept.image.device},
                                 {"bytes", absl::StrCat(kept.image.data_bytes())},
                                 {"operations", absl::StrCat(kept.image.pending.size())},
                                 {"journal", absl::StrCat(summary->records)}});
  return absl::OkStatus();
}

}  // namespace kiln::sessions
