#include "server/sessions/restorer.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// What did not come back, for lack of memory perhaps, is tried again after this.
constexpr absl::Duration kPause = absl::Seconds(1);

}  // namespace

absl::Status Restarting(absl::string_view why) {
  return errors::WithReason(absl::UnavailableError(why), "RESTARTING");
}

Restorer::Restorer(KeptSessions& kept, Registry& registry, std::function<absl::Time()> now)
    : kept_(kept), registry_(registry), now_(std::move(now)) {}

void Restorer::Start() {
  std::deque<std::unique_ptr<Waiting>> all;
  for (KeptSessions::Kept& kept : kept_.List()) {
    registry_.CountFrom(kept.image.identity.number + 1);
    auto waiting = std::make_unique<Waiting>();
    waiting->expires = now_() + kept.image.lease_then();
    waiting->kept = std::move(kept);
    all.push_back(std::move(waiting));
  }
  // The oldest first, which had their memory first.
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a->kept.image.identity.number < b->kept.image.identity.number;
  });
  {
    absl::MutexLock lock(&mutex_);
    waiting_ = std::move(all);
  }
  thread_ = std::thread([this] { Loop(); });
}

void Restorer::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status Restorer::Ask(const std::string& user, const std::string& id) {
  absl::MutexLock lock(&mutex_);
  if (!id.empty() && id == under_way_.id && user == under_way_.user)
    return Restarting("the session is being restored; attach again");
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const auto& waiting) {
    return waiting->kept.image.identity.id == id && waiting->kept.image.user == user;
  });
  if (found == waiting_.end()) return absl::OkStatus();
  auto wanted = std::move(*found);
  waiting_.erase(found);
  const std::string why = wanted->why;
  waiting_.push_front(std::move(wanted));
  return Restarting(
      why.empty() ? "the session waits to be restored; attach again"
                  : absl::StrCat("the session cannot be restored yet, and is tried again: ", why));
}

int Restorer::DropAllOf(const std::string& user) {
  absl::MutexLock lock(&mutex_);
  if (under_way_.user == user) under_way_.is_dropped = true;
  return static_cast<int>(std::erase_if(waiting_, [&](const std::unique_ptr<Waiting>& waiting) {
    if (waiting->kept.image.user != user) return false;
    kept_.Remove(waiting->kept).IgnoreError();
    return true;
  }));
}

std::unique_ptr<Restorer::Waiting> Restorer::Take() {
  if (stopping_ || waiting_.empty()) return nullptr;
  auto next = std::move(waiting_.front());
  waiting_.pop_front();
  under_way_ = {next->kept.image.identity.id, next->kept.image.user};
  return next;
}

void Restorer::Loop() {
  absl::MutexLock lock(&mutex_);
  while (auto next = Take()) {
    mutex_.Unlock();
    const absl::Status status = Restore(next->kept);
    mutex_.Lock();
    const UnderWay ended = std::exchange(under_way_, {});
    if (status.ok() && !ended.is_dropped) continue;
    mutex_.Unlock();
    const bool waits = !status.ok() && Waits(*next, status, ended.is_dropped);
    if (status.ok()) registry_.Close(ended.id).IgnoreError();
    mutex_.Lock();
    if (!waits) continue;
    next->why = std::string(status.message());
    waiting_.push_back(std::move(next));
    if (!stopping_) changed_.WaitWithTimeout(&mutex_, kPause);
  }
}

bool Restorer::Waits(const Waiting& waiting, const absl::Status& status, bool is_dropped) {
  const std::string& name = waiting.kept.image.identity.name;
  if (!is_dropped && !absl::IsDataLoss(status) && now_() < waiting.expires) {
    if (waiting.why != status.message())
      log::Warning("session_waits", {{"session", name}, {"why", std::string(status.message())}});
    return true;
  }
  kept_.Remove(waiting.kept).IgnoreError();
  log::Error("session_lost", {{"session", name},
                              {"why", std::string(status.message())},
                              {"lost", "its tensors and programs; its client is told"}});
  return false;
}

absl::Status Restorer::Restore(const KeptSessions::Kept& kept) {
  auto reader = kept_.Read(kept);
  if (!reader.ok()) return reader.status();
  auto session = registry_.Make(kept.image);
  if (!session.ok()) return session.status();
  auto image = std::make_shared<const SessionImage>(kept.image);
  absl::Status status = (*session)->Restore(std::move(image), **reader);
  // Only now is it known that the bytes are the right ones.
  if (status.ok()) status = (*reader)->Finish();
  // From here on the file is out of date, so it must not outlive a crash.
  if (status.ok()) status = kept_.Remove(kept);
  if (!status.ok()) {
    (*session)->Close(status);
    return status;
  }
  registry_.Adopt(*session);
  (*session)->Resume();
  log::Info("session_restored", {{"session", kept.image.identity.name},
                                 {"device", kept.image.device},
                                 {"bytes", absl::StrCat(kept.image.data_bytes())},
                                 {"operations", absl::StrCat(kept.image.pending.size())}});
  return absl::OkStatus();
}

}  // namespace kiln::sessions
