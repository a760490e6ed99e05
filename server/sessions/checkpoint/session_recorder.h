// Keeps one running session restorable: takes checkpoints of it, and logs what it does since.
#ifndef KILN_SERVER_SESSIONS_CHECKPOINT_SESSION_RECORDER_H_
#define KILN_SERVER_SESSIONS_CHECKPOINT_SESSION_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/sessions/checkpoint/checkpoint.h"
#include "server/sessions/checkpoint/copy_deadline.h"
#include "server/sessions/checkpoint/log.h"
#include "server/sessions/checkpoint/store.h"
#include "server/sessions/recorder.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

// Guarded by the session's lock: the methods below take it, except where they require it.
class SessionRecorder final : public Recorder {
 public:
  // Requires: both outlive this.
  SessionRecorder(SessionState& session, const CheckpointStore& store)
      : session_(session), store_(store) {}

  // True if its files are complete, so that the next daemon can restore it if this one is killed.
  bool HasCheckpoint() const;
  // True if Take should be called.
  bool IsDue() const;
  // Writes a checkpoint of the state between two operations, which replaces the earlier one. The
  // session continues meanwhile; the tensors in the checkpoint stay in memory until it is written.
  // For one thread at a time. After an error the session has the earlier checkpoint and its log, or
  // none, as before.
  absl::Status Take(CopyDeadline& deadline);
  // Returns once why its checkpoint was dropped; OK if it was not, or if this was called since.
  absl::Status TakeLoss();
  // Called after Restore, and Replay if there was a log: the session has the checkpoint that it was
  // restored from, and continues that log. Requires: there is no other log or checkpoint.
  void Continue(const Checkpoint& checkpoint, const SessionLogReader& log);
  // The number of the log's last segment so far. Requires: the session's lock is held.
  uint64_t last_segment() const { return log_ ? log_->number() : last_number_; }

  void Executed(uint64_t sequence, absl::string_view operation) override;
  void Wrote(uint64_t sequence, absl::string_view operation, const std::vector<std::string>& blobs,
             const std::vector<absl::string_view>& bytes) override;
  void Cancelled(uint64_t first, uint64_t cancel, const std::vector<uint64_t>& runs) override;
  void TakenOver(uint64_t generation) override;
  void Parked() override;
  void ForgetBlobs(const std::vector<std::string>& names) override;
  void HoldsBlob(const std::string& name) override;
  void DeletedBlobs(const std::vector<std::string>& names) override;
  void FailedLate(const absl::Status& why) override;
  void Close(bool files_stay) override;
  absl::Time checkpoint_time() const override;

 private:
  struct Begun {
    Checkpoint checkpoint;
    std::shared_ptr<SessionLog> log;
  };
  // Captures the state between two operations, and begins a segment for what comes after.
  absl::StatusOr<Begun> Begin();
  absl::Status BeginSegment();
  void SetTaken(const Checkpoint& checkpoint);
  std::string HeadOf(uint64_t sequence) const;
  void Append(absl::Span<const absl::string_view> record);
  // Appends a large record; called without the lock, because it takes long.
  void AppendMuch(const std::shared_ptr<SessionLog>& log,
                  absl::Span<const absl::string_view> record);
  void ForgetAllBlobs();
  // Removes the files: the session has no checkpoint from here on.
  void Drop(const absl::Status& why);
  // A checkpoint has a log, which has a segment for what came after it. Requires: the session's
  // lock is held.
  void Validate() const;
  absl::Time now() const { return session_.services.clock.steady(); }
  absl::Duration interval() const { return session_.identity.checkpoint_interval; }

  SessionState& session_;
  const CheckpointStore& store_;
  std::shared_ptr<SessionLog> log_;  // null: not begun yet, or dropped; shared with a large record
  bool has_checkpoint_ = false;
  uint64_t checkpoint_number_ = 0;  // Checkpoint::log
  int64_t checkpoint_bytes_ = 0;
  absl::Time checkpoint_time_ = absl::InfinitePast();
  absl::Time due_ = absl::InfinitePast();
  absl::Time begun_ = absl::InfinitePast();  // the last attempt, successful or not
  uint64_t last_number_ = 0;                 // of the log's segments so far
  // Content-addressed blobs that the log has and the session has owned since; at most kBlobsMax.
  absl::flat_hash_set<std::string> blobs_;
  uint64_t forgotten_ = 0;  // number of removals from `blobs_`
  absl::Status loss_;       // cleared by TakeLoss
};

// The recorder of a session; null if it has none. Requires: it was made by SessionRecorder.
SessionRecorder* RecorderOf(const SessionState& session);

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_CHECKPOINT_SESSION_RECORDER_H_
