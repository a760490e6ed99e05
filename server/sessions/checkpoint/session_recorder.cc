#include "server/sessions/checkpoint/session_recorder.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "proto/check/check.h"
#include "server/buffers/blob_name.h"
#include "server/sessions/checkpoint/capture.h"
#include "server/sessions/checkpoint/log_record.h"

namespace kiln::sessions {
namespace {

// A checkpoint is taken early once the log is larger than this and than the checkpoint.
constexpr int64_t kLongLog = 256 << 20;
// The time from the first of a run's results to its answer, or until the bytes of a Write are on
// the device.
constexpr absl::Duration kUntilSettled = absl::Seconds(5);
// The time until the next attempt if a checkpoint could not be begun, and the minimum between two.
constexpr absl::Duration kSoon = absl::Seconds(1);
// After this number of checkpoints failed in a row, the files are dropped, which bounds their
// number.
constexpr uint64_t kSegmentsMax = 256;
// The blobs known to be in the log; above this limit some are written again.
constexpr size_t kBlobsMax = 4096;

}  // namespace

SessionRecorder* RecorderOf(const SessionState& session) {
  return static_cast<SessionRecorder*>(session.recorder.get());
}

bool SessionRecorder::HasCheckpoint() const {
  absl::MutexLock lock(&session_.mutex);
  return has_checkpoint_;
}

bool SessionRecorder::IsDue() const {
  absl::MutexLock lock(&session_.mutex);
  if (session_.closed || session_.restoration || session_.is_replaying) return false;
  if (now() >= due_) return true;
  return now() >= begun_ + kSoon && has_checkpoint_ &&
         log_->bytes_since(checkpoint_number_) > std::max(kLongLog, checkpoint_bytes_);
}

absl::Status SessionRecorder::TakeLoss() {
  absl::MutexLock lock(&session_.mutex);
  return std::exchange(loss_, absl::OkStatus());
}

absl::StatusOr<SessionRecorder::Begun> SessionRecorder::Begin() {
  const uint64_t executed = session_.executor.Pause();
  const auto go_on = absl::MakeCleanup([this] {
    session_.executor.Unpause();
    session_.ExecuteQueued();
  });
  absl::MutexLock lock(&session_.mutex);
  if (session_.closed) return *session_.closed;
  if (session_.restoration || session_.is_replaying)
    return absl::UnavailableError("the session is being restored");
  begun_ = now();
  due_ = now() + std::min(kSoon, interval());
  const auto is_settled = [&] {
    return session_.closed.has_value() || IsSettled(session_, executed);
  };
  session_.mutex.AwaitWithTimeout(absl::Condition(&is_settled), kUntilSettled);
  if (session_.closed) return *session_.closed;
  auto checkpoint = Capture(session_, executed);
  if (!checkpoint.ok()) return checkpoint.status();
  due_ = now() + interval();
  if (log_ && log_->number() >= checkpoint_number_ + kSegmentsMax)
    Drop(absl::AbortedError("too many checkpoints of it have failed"));
  if (!log_) log_ = store_.NewLog(session_.identity, session_.user->name, last_number_, "");
  // Operations executed from here on are not in the checkpoint.
  if (absl::Status status = BeginSegment(); !status.ok()) return status;
  ForgetAllBlobs();
  checkpoint->log = last_number_ = log_->number();
  checkpoint->is_live = true;
  KILN_VALIDATE(*this, 1);
  return Begun{*std::move(checkpoint), log_};
}

absl::Status SessionRecorder::BeginSegment() {
  const absl::Status begun = log_->Begin(session_.parked ? session_.parked->name : "");
  if (!begun.ok()) Drop(begun);
  return begun;
}

absl::Status SessionRecorder::Take(CopyDeadline& deadline) {
  auto begun = Begin();
  if (!begun.ok()) return begun.status();
  Checkpoint& checkpoint = begun->checkpoint;
  // Blobs that arrive later are in the log, too.
  AddBlobs(session_, &checkpoint);
  auto file = store_.Draft(checkpoint, deadline);
  absl::Status status = file.status();
  if (status.ok()) status = (*file)->Seal();
  absl::ReleasableMutexLock lock(&session_.mutex);
  // If the log was ended meanwhile, the checkpoint is out of date.
  if (session_.closed || log_ != begun->log)
    return absl::CancelledError("the session was closed, or a part of it failed meanwhile");
  if (status.ok()) status = (*file)->Install();
  if (!status.ok()) {
    // A log without a checkpoint restores nothing.
    if (!has_checkpoint_) Drop(status);
    return status;
  }
  SetTaken(checkpoint);
  KILN_VALIDATE(*this, 1);
  lock.Release();
  begun->log->ForgetBefore(checkpoint.log);
  return absl::OkStatus();
}

void SessionRecorder::SetTaken(const Checkpoint& checkpoint) {
  session_.mutex.AssertHeld();
  KILN_CHECK(log_ != nullptr);
  KILN_CHECK_GE(checkpoint.log, checkpoint_number_);
  has_checkpoint_ = true;
  checkpoint_number_ = checkpoint.log;
  checkpoint_bytes_ = checkpoint.data_bytes();
  checkpoint_time_ = session_.services.clock.wall();
}

void SessionRecorder::Continue(const Checkpoint& checkpoint, const SessionLogReader& log) {
  absl::MutexLock lock(&session_.mutex);
  KILN_CHECK(log_ == nullptr && !has_checkpoint_);
  log_ = store_.NewLog(session_.identity, session_.user->name, log.last_number(), log.last_tag());
  SetTaken(checkpoint);
  last_number_ = log.last_number() + 1;
  // Takes a checkpoint now if there was a log, so that it need not be replayed once more.
  const bool was_empty = log.last_number() < checkpoint.log;
  due_ = was_empty ? now() + interval() : now();
  BeginSegment().IgnoreError();
  KILN_VALIDATE(*this, 1);
}

std::string SessionRecorder::HeadOf(uint64_t sequence) const {
  return EncodeHead(ExecutedRecord{.sequence = sequence,
                                   .acknowledged = session_.answers.acknowledged(),
                                   .highest_handle = session_.highest_handle,
                                   .highest_program = session_.highest_program});
}

void SessionRecorder::Executed(uint64_t sequence, absl::string_view operation) {
  session_.mutex.AssertHeld();
  Append({HeadOf(sequence), operation});
}

void SessionRecorder::Wrote(uint64_t sequence, absl::string_view operation,
                            const std::vector<std::string>& blobs,
                            const std::vector<absl::string_view>& bytes) {
  std::string head;
  std::shared_ptr<SessionLog> log;
  {
    absl::MutexLock lock(&session_.mutex);
    ForgetBlobs(blobs);
    log = log_;
    if (!log) return;
    head = HeadOf(sequence);
  }
  std::vector<absl::string_view> record = {head, operation};
  record.insert(record.end(), bytes.begin(), bytes.end());
  AppendMuch(log, record);
}

void SessionRecorder::Cancelled(uint64_t first, uint64_t cancel,
                                const std::vector<uint64_t>& runs) {
  session_.mutex.AssertHeld();
  Append({Encode(CancelledRecord{first, cancel, runs})});
}

void SessionRecorder::TakenOver(uint64_t generation) {
  session_.mutex.AssertHeld();
  KILN_CHECK_EQ(generation, session_.generation);
  Append({Encode(TakenOverRecord{generation})});
}

void SessionRecorder::Parked() {
  session_.mutex.AssertHeld();
  ForgetAllBlobs();
  // The name is in the header of the new segment, so the next daemon knows it before it has read
  // the whole log.
  if (log_) BeginSegment().IgnoreError();
  KILN_VALIDATE(*this, 1);
}

void SessionRecorder::ForgetBlobs(const std::vector<std::string>& names) {
  session_.mutex.AssertHeld();
  ++forgotten_;
  for (const std::string& name : names) blobs_.erase(name);
}

void SessionRecorder::ForgetAllBlobs() {
  session_.mutex.AssertHeld();
  ++forgotten_;
  blobs_.clear();
}

void SessionRecorder::HoldsBlob(const std::string& name) {
  std::shared_ptr<SessionLog> log;
  uint64_t forgotten = 0;
  {
    absl::MutexLock lock(&session_.mutex);
    log = log_;
    forgotten = forgotten_;
    // A client that asks for the same data again and again must not fill the disk with it.
    if (blobs_.contains(name)) return;
  }
  if (!log) return;
  const buffers::BlobStore::Blob blob =
      session_.services.blobs->Peek(session_.identity.number, session_.user->name, name);
  if (!blob) return;
  const std::string head = EncodeHead(BlobRecord{name, {}});
  std::vector<absl::string_view> record = {head};
  record.insert(record.end(), blob->pieces().begin(), blob->pieces().end());
  AppendMuch(log, record);
  if (!buffers::IsContentAddressed(name)) return;
  absl::MutexLock lock(&session_.mutex);
  if (log_ == log && forgotten_ == forgotten && blobs_.size() < kBlobsMax) blobs_.insert(name);
  KILN_VALIDATE(*this, 1);
}

void SessionRecorder::DeletedBlobs(const std::vector<std::string>& names) {
  absl::MutexLock lock(&session_.mutex);
  ForgetBlobs(names);
  Append({Encode(BlobsDeletedRecord{names})});
}

void SessionRecorder::Append(absl::Span<const absl::string_view> record) {
  session_.mutex.AssertHeld();
  if (!log_) return;
  if (absl::Status status = log_->Append(record); !status.ok()) Drop(status);
}

void SessionRecorder::AppendMuch(const std::shared_ptr<SessionLog>& log,
                                 absl::Span<const absl::string_view> record) {
  const absl::Status status = log->Append(record);
  if (status.ok()) return;
  absl::MutexLock lock(&session_.mutex);
  // The session may have another log by now.
  if (log_ == log) Drop(status);
}

void SessionRecorder::Drop(const absl::Status& why) {
  session_.mutex.AssertHeld();
  if (!log_) return;
  KILN_CHECK(!why.ok());
  // Before anything leaves the daemon that is not in the log.
  log_->Discard();
  last_number_ = log_->number();
  log_.reset();
  ForgetAllBlobs();
  if (std::exchange(has_checkpoint_, false)) loss_ = why;
  due_ = now() + interval();
  KILN_VALIDATE(*this, 1);
}

void SessionRecorder::Validate() const {
  session_.mutex.AssertReaderHeld();
  KILN_CHECK(log_ != nullptr || (!has_checkpoint_ && blobs_.empty()));
  KILN_CHECK_LE(blobs_.size(), kBlobsMax);
  if (log_) KILN_CHECK_LE(last_number_, log_->number());
  if (has_checkpoint_) KILN_CHECK_LE(checkpoint_number_, log_->number());
  KILN_CHECK_GE(checkpoint_bytes_, 0);
}

void SessionRecorder::FailedLate(const absl::Status& why) {
  session_.mutex.AssertHeld();
  if (!log_) return;
  Drop(why);
  due_ = now();
}

void SessionRecorder::Close(bool files_stay) {
  session_.mutex.AssertHeld();
  if (log_ && !files_stay) log_->Discard();
  log_.reset();
  has_checkpoint_ = false;
  ForgetAllBlobs();
  KILN_VALIDATE(*this, 1);
}

absl::Time SessionRecorder::checkpoint_time() const {
  return has_checkpoint_ ? checkpoint_time_ : absl::InfinitePast();
}

}  // namespace kiln::sessions
