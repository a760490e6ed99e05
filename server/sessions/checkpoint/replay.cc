// Replays the log of a session: restores it as it was when its daemon was killed.
#include <string>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/sessions/checkpoint/restore.h"

namespace kiln::sessions {
namespace {

// Definitions compile concurrently.
constexpr int64_t kPendingMax = 64;
constexpr absl::Duration kLookWhetherToGiveUp = absl::Milliseconds(100);

// True if a later attempt may succeed.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error) ||
         absl::IsDeadlineExceeded(error) || absl::IsCancelled(error) || absl::IsAborted(error);
}

// Applies one record after another.
struct Replayer {
  SessionState& session;
  const LogSummary& summary;
  const std::function<bool()>& gives_up;

  absl::Status operator()(ExecutedRecord& record) const {
    Operation& operation = record.operation;
    if (absl::Status status = PrepareReplay(operation, session); !status.ok()) return status;
    // The run was cancelled and had no effect.
    if (auto* run = std::get_if<RunProgram>(&operation);
        run != nullptr && summary.cancelled.contains(record.sequence))
      operation = Refused{runtime::CancelledRun(), std::move(run->outputs)};
    // The client has the answer already.
    if (std::holds_alternative<Read>(operation) && record.sequence <= summary.acknowledged)
      operation = Release{};
    // Waits, so that no more tensors are in memory at a time than there were.
    const int64_t pending_max = TakesMemory(operation) ? 0 : kPendingMax;
    {
      absl::MutexLock lock(&session.mutex);
      if (record.sequence != session.answers.last_received() + 1)
        return absl::DataLossError("operations are missing from the operation log");
      session.answers.Acknowledge(record.acknowledged);
      session.answers.RestoreReceived(record.sequence);
      session.highest_handle = record.highest_handle;
      session.highest_program = record.highest_program;
      session.pending.Admit(record.sequence, &operation);
      session.executor.Add(record.sequence, std::move(operation));
      KILN_VALIDATE(session, session.entries());
    }
    session.ExecuteQueued();
    absl::Status status = Await(pending_max);
    if (status.ok() || MayPass(status)) return status;
    return absl::DataLossError(
        absl::StrCat("operation ", record.sequence, " cannot be repeated: ", status.message()));
  }

  absl::Status operator()(CancelledRecord& record) const {
    absl::MutexLock lock(&session.mutex);
    session.AddCancelled({record.first, record.cancel});
    return absl::OkStatus();
  }

  absl::Status operator()(BlobRecord& record) const {
    return RestoreBlob(session, record.name, std::move(record.data));
  }

  absl::Status operator()(BlobsDeletedRecord& record) const {
    session.services.blobs->Delete(session.identity.number, session.user->name, record.names);
    return absl::OkStatus();
  }

  absl::Status operator()(TakenOverRecord& record) const {
    absl::MutexLock lock(&session.mutex);
    session.generation = record.generation;
    session.cancelled.clear();
    return absl::OkStatus();
  }

  // Waits until at most `pending_max` operations are pending. Returns the first error of one.
  absl::Status Await(int64_t pending_max) const {
    absl::MutexLock lock(&session.mutex);
    const auto is_over = [&] {
      return !session.replay_error.ok() ||
             (!session.restoration && session.pending.size() <= pending_max);
    };
    while (!session.mutex.AwaitWithTimeout(absl::Condition(&is_over), kLookWhetherToGiveUp))
      if (gives_up()) return absl::CancelledError("the daemon is stopping");
    return session.replay_error;
  }
};

// Limits are not enforced for what had been admitted before.
void SetReplaying(SessionState& session, bool is_replaying) {
  session.mutex.AssertHeld();
  KILN_CHECK_NE(session.is_replaying, is_replaying);
  session.is_replaying = is_replaying;
  session.devices.SetExempt(is_replaying);
  session.host->SetExempt(is_replaying);
}

}  // namespace

absl::Status Replay(SessionState& session, SessionLogReader& log, const LogSummary& summary,
                    const std::function<bool()>& gives_up) {
  {
    absl::MutexLock lock(&session.mutex);
    SetReplaying(session, true);
  }
  const auto end = absl::MakeCleanup([&session] {
    absl::MutexLock lock(&session.mutex);
    SetReplaying(session, false);
    session.restored_through = session.answers.last_received();
    session.StartLease(session.FullLease());
  });
  session.ExecuteQueued();
  const Replayer replayer{session, summary, gives_up};
  absl::Status status = replayer.Await(0);
  while (status.ok()) {
    auto bytes = log.Next();
    if (!bytes.ok()) return bytes.status();
    if (!*bytes) return replayer.Await(0);
    auto record = DecodeRecord(*std::move(*bytes));
    if (!record.ok()) return record.status();
    status = std::visit(replayer, *record);
  }
  return status;
}

}  // namespace kiln::sessions
