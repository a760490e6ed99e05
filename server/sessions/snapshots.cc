#include "server/sessions/snapshots.h"

#include <iterator>
#include <utility>

#include "server/clock/clock.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// The maximal delay of an image.
constexpr absl::Duration kLook = absl::Milliseconds(200);

}  // namespace

void Snapshots::Add(const std::shared_ptr<Session>& session) {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  added_.push_back({session, {}});
  idle_ = false;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.Signal();
}

void Snapshots::Stop() {
  std::thread ended;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (patience_) patience_->GiveUp();
    changed_.Signal();
    ended.swap(thread_);
  }
  if (ended.joinable()) ended.join();
}

bool Snapshots::IsIdle() const {
  absl::MutexLock lock(&mutex_);
  return idle_;
}

void Snapshots::Loop() {
  std::vector<Looked> all;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      idle_ = all.empty() && added_.empty();
      while (!stopping_ && all.empty() && added_.empty()) changed_.Wait(&mutex_);
      if (!stopping_ && added_.empty()) changed_.WaitWithTimeout(&mutex_, kLook);
      // Checked here, too: without sessions the loop below is not entered.
      if (stopping_) return;
      std::move(added_.begin(), added_.end(), std::back_inserter(all));
      added_.clear();
    }
    for (auto looked = all.begin(); looked != all.end();) {
      std::shared_ptr<Patience> patience;
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_) return;
        patience = patience_ = std::make_shared<Patience>(copy_patience_);
      }
      looked = Look(*looked, *patience) ? std::next(looked) : all.erase(looked);
    }
  }
}

bool Snapshots::Look(Looked& looked, Patience& patience) {
  const std::shared_ptr<Session> session = looked.session.lock();
  if (!session || session->is_closed()) return false;
  const std::string& name = session->identity().name;
  if (const absl::Status lost = session->TakeProtectionLoss(); !lost.ok()) {
    log::Warning("session_unprotected",
                 {{"session", name},
                  {"why", std::string(lost.message())},
                  {"so", "it is lost if the daemon is killed before the next checkpoint"}});
  }
  if (!session->ImageIsDue()) return true;
  const absl::Time begun = SteadyNow();
  const absl::Status status = session->TakeImage(patience);
  if (status.ok()) {
    looked.said.clear();
    log::Debug("snapshot_taken",
               {{"session", name}, {"seconds", absl::FormatDuration(SteadyNow() - begun)}});
  } else if (!session->is_closed() && looked.said != status.message()) {
    looked.said = std::string(status.message());
    log::Warning("snapshot_failed",
                 {{"session", name},
                  {"why", looked.said},
                  {"protected", session->IsProtected() ? "by the previous checkpoint" : "no"}});
  }
  return true;
}

}  // namespace kiln::sessions
