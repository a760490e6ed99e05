#include "server/sessions/checkpoint/writer.h"

#include <iterator>
#include <utility>

#include "proto/check/check.h"
#include "server/clock/clock.h"
#include "server/log/log.h"
#include "server/sessions/checkpoint/session_recorder.h"

namespace kiln::sessions {
namespace {

// The maximal delay of a checkpoint.
constexpr absl::Duration kLook = absl::Milliseconds(200);

// The first checkpoint has no tensors.
constexpr absl::Duration kFirstTimeout = absl::Seconds(1);

void LogFailure(const std::string& session, const std::string& why, bool has_earlier) {
  log::Warning("snapshot_failed",
               {{"session", session},
                {"why", why},
                {"protected", has_earlier ? "by the previous checkpoint" : "no"}});
}

}  // namespace

void CheckpointWriter::Begin(const std::shared_ptr<Session>& session) {
  KILN_CHECK(session != nullptr && RecorderOf(session->state()) != nullptr);
  CopyDeadline deadline(kFirstTimeout);
  const absl::Status status = RecorderOf(session->state())->Take(deadline);
  if (!status.ok()) LogFailure(session->identity().name, std::string(status.message()), false);
  Add(session);
}

void CheckpointWriter::Add(const std::shared_ptr<Session>& session) {
  KILN_CHECK(session == nullptr || RecorderOf(session->state()) != nullptr);
  absl::MutexLock lock(&mutex_);
  if (stopping_) return;
  added_.push_back({session, {}});
  idle_ = false;
  if (!thread_.joinable()) thread_ = std::thread([this] { Loop(); });
  changed_.Signal();
  KILN_VALIDATE(*this, 1);
}

void CheckpointWriter::Validate() const {
  KILN_CHECK(!idle_ || added_.empty());
  KILN_CHECK(stopping_ || added_.empty() || thread_.joinable());
}

void CheckpointWriter::Stop() {
  std::thread ended;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (deadline_) deadline_->Cancel();
    changed_.Signal();
    ended.swap(thread_);
  }
  if (ended.joinable()) ended.join();
}

bool CheckpointWriter::IsIdle() const {
  absl::MutexLock lock(&mutex_);
  return idle_;
}

void CheckpointWriter::Loop() {
  std::vector<Watched> all;
  while (true) {
    {
      absl::MutexLock lock(&mutex_);
      idle_ = all.empty() && added_.empty();
      KILN_VALIDATE(*this, 1);
      while (!stopping_ && all.empty() && added_.empty()) changed_.Wait(&mutex_);
      if (!stopping_ && added_.empty()) changed_.WaitWithTimeout(&mutex_, kLook);
      // Checked here, too: without sessions the loop below is not entered.
      if (stopping_) return;
      std::move(added_.begin(), added_.end(), std::back_inserter(all));
      added_.clear();
    }
    for (auto watched = all.begin(); watched != all.end();) {
      std::shared_ptr<CopyDeadline> deadline;
      {
        absl::MutexLock lock(&mutex_);
        if (stopping_) return;
        deadline = deadline_ = std::make_shared<CopyDeadline>(copy_timeout_);
      }
      watched = Look(*watched, *deadline) ? std::next(watched) : all.erase(watched);
    }
  }
}

bool CheckpointWriter::Look(Watched& watched, CopyDeadline& deadline) {
  const std::shared_ptr<Session> session = watched.session.lock();
  if (!session || session->is_closed()) return false;
  KILN_CHECK(RecorderOf(session->state()) != nullptr) << session->identity().name;
  SessionRecorder& recorder = *RecorderOf(session->state());
  const std::string& name = session->identity().name;
  if (const absl::Status loss = recorder.TakeLoss(); !loss.ok()) {
    log::Warning("session_unprotected",
                 {{"session", name},
                  {"why", std::string(loss.message())},
                  {"so", "it is lost if the daemon is killed before the next checkpoint"}});
  }
  if (!recorder.IsDue()) return true;
  const absl::Time begun = SteadyNow();
  const absl::Status status = recorder.Take(deadline);
  if (status.ok()) {
    watched.said.clear();
    log::Debug("snapshot_taken",
               {{"session", name}, {"seconds", absl::FormatDuration(SteadyNow() - begun)}});
  } else if (!session->is_closed() && watched.said != status.message()) {
    watched.said = std::string(status.message());
    LogFailure(name, watched.said, recorder.HasCheckpoint());
  }
  return true;
}

}  // namespace kiln::sessions
