// Replay of a session's journal: restores the session as it was when its daemon was killed.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "server/buffers/blob_name.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// Definitions compile concurrently.
constexpr int64_t kUnfinishedMax = 64;
constexpr absl::Duration kLookWhetherToGiveUp = absl::Milliseconds(100);

// True if a later attempt may succeed.
bool MayPass(const absl::Status& error) {
  return absl::IsUnavailable(error) || absl::IsResourceExhausted(error) ||
         absl::IsDeadlineExceeded(error) || absl::IsCancelled(error) || absl::IsAborted(error);
}

}  // namespace

absl::Status Session::Replay(JournalReader& journal, const JournalSummary& summary,
                             const std::function<bool()>& gives_up) {
  {
    absl::MutexLock lock(&mutex_);
    replaying_ = true;
    // Limits are not enforced for what had been admitted before.
    devices_.SetExempt(true);
    host_->SetExempt(true);
  }
  const auto end = absl::MakeCleanup([this] {
    absl::MutexLock lock(&mutex_);
    replaying_ = false;
    devices_.SetExempt(false);
    host_->SetExempt(false);
    resumed_through_ = log_.last_received();
    StartLease();
  });
  Resume();
  absl::Status status = AwaitReplayed(0, gives_up);
  while (status.ok()) {
    auto bytes = journal.Next();
    if (!bytes.ok()) return bytes.status();
    if (!*bytes) break;
    auto record = DecodeRecord(*std::move(*bytes));
    if (!record.ok()) return record.status();
    if (auto* executed = std::get_if<ExecutedRecord>(&*record)) {
      status = ReplayOne(*executed, summary, gives_up);
    } else if (auto* cancelled = std::get_if<CancelledRecord>(&*record)) {
      status = ReplayOne(*cancelled);
    } else if (auto* blob = std::get_if<BlobRecord>(&*record)) {
      status = ReplayOne(*blob);
    } else if (auto* deleted = std::get_if<BlobsDeletedRecord>(&*record)) {
      status = ReplayOne(*deleted);
    } else {
      status = ReplayOne(std::get<TakenOverRecord>(*record));
    }
  }
  if (status.ok()) status = AwaitReplayed(0, gives_up);
  return status;
}

absl::Status Session::ReplayOne(ExecutedRecord& record, const JournalSummary& summary,
                                const std::function<bool()>& gives_up) {
  Operation& operation = record.operation;
  if (auto* define = std::get_if<DefineProgram>(&operation); define && !record.wire.empty()) {
    define->graph = services_.unpack_graph(record.wire, *host_);
    if (!define->graph.ok()) return define->graph.status();
  }
  // The run was cancelled and had no effect.
  if (auto* run = std::get_if<RunProgram>(&operation);
      run != nullptr && summary.cancelled.contains(record.sequence))
    operation = Refused{runtime::CancelledRun(), std::move(run->outputs)};
  // The client has the answer already.
  if (std::holds_alternative<Read>(operation) && record.sequence <= summary.acknowledged)
    operation = Release{};
  // Waits, so that no more tensors are in memory at a time than there were.
  const bool takes_memory = std::holds_alternative<RunProgram>(operation) ||
                            std::holds_alternative<Write>(operation) ||
                            std::holds_alternative<Move>(operation);
  {
    absl::MutexLock lock(&mutex_);
    if (record.sequence != log_.last_received() + 1)
      return absl::DataLossError("operations are missing from the operation log");
    log_.Acknowledge(record.acknowledged);
    log_.RestoreReceived(record.sequence);
    highest_handle_ = record.highest_handle;
    highest_program_ = record.highest_program;
    unfinished_.Admit(record.sequence, &operation);
    executor_.Add(record.sequence, std::move(operation));
  }
  ExecuteQueued();
  absl::Status status = AwaitReplayed(takes_memory ? 0 : kUnfinishedMax, gives_up);
  if (status.ok() || MayPass(status)) return status;
  return absl::DataLossError(
      absl::StrCat("operation ", record.sequence, " cannot be repeated: ", status.message()));
}

absl::Status Session::ReplayOne(CancelledRecord& record) {
  absl::MutexLock lock(&mutex_);
  if (cancelled_.empty() || cancelled_.back().cancel < record.cancel)
    cancelled_.push_back({record.first, record.cancel});
  return absl::OkStatus();
}

absl::Status Session::ReplayOne(BlobRecord& record) {
  return RestoreBlob(record.name, std::move(record.data));
}

absl::Status Session::ReplayOne(BlobsDeletedRecord& record) {
  services_.blobs->Delete(identity_.number, user_->name, record.names);
  return absl::OkStatus();
}

absl::Status Session::ReplayOne(TakenOverRecord& record) {
  absl::MutexLock lock(&mutex_);
  generation_ = record.generation;
  cancelled_.clear();
  return absl::OkStatus();
}

absl::Status Session::RestoreBlob(const std::string& name, std::string data) {
  auto upload =
      services_.blobs->BeginAgain(identity_.number, user_->name, name, data.size(), *host_);
  absl::Status status = upload.status();
  if (status.ok()) status = (*upload)->Append({data});
  if (status.ok()) status = (*upload)->Finish();
  // For a missing digest, FindBlobs tells the client to send it again; other blobs are not sent
  // again.
  return buffers::DigestIn(name).empty() ? status : absl::OkStatus();
}

absl::Status Session::AwaitReplayed(int64_t unfinished_max, const std::function<bool()>& gives_up) {
  absl::MutexLock lock(&mutex_);
  const auto is_over = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !replay_error_.ok() || (!resumption_ && unfinished_.size() <= unfinished_max);
  };
  while (!mutex_.AwaitWithTimeout(absl::Condition(&is_over), kLookWhetherToGiveUp))
    if (gives_up()) return absl::CancelledError("the daemon is stopping");
  return replay_error_;
}

}  // namespace kiln::sessions
