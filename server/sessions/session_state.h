// The state of one session, which its parts share: operations (operations/) execute on it, Session
// (session.h) says who is connected and when it ends, checkpoint/ saves and restores it.
//
// A failed operation binds its new handles to failed values: operations that use them fail with the
// same code and reason. A Run that fails before it starts (wrong inputs, no memory) changes no
// state: the inputs that it would have updated keep their values. If a run fails on the device, the
// updated inputs are failed values, too.
#ifndef KILN_SERVER_SESSIONS_SESSION_STATE_H_
#define KILN_SERVER_SESSIONS_SESSION_STATE_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/sessions/answer_log.h"
#include "server/sessions/device_shares.h"
#include "server/sessions/executor.h"
#include "server/sessions/handle_table.h"
#include "server/sessions/identity.h"
#include "server/sessions/operations/operation.h"
#include "server/sessions/pending_table.h"
#include "server/sessions/program_table.h"
#include "server/sessions/recorder.h"
#include "server/sessions/restoration.h"
#include "server/sessions/services.h"
#include "server/sessions/user.h"

namespace kiln::sessions {

// The stream of the client.
struct Stream {
  std::shared_ptr<Sink> sink;      // null: not connected
  bool end_after_answers = false;  // the client sends no more
  bool refused_more = false;       // Sink::ReadMore must be called once there is room
};

// The name under which the session was parked, and what it names.
struct Parked {
  std::string name;
  absl::Duration keep;
  std::vector<NamedHandle> tensors;
  memory::Charge charge;

  static int64_t BytesOf(const std::vector<NamedHandle>& tensors);
};

// Shared, because operations that were not answered keep it alive.
struct SessionState : std::enable_shared_from_this<SessionState> {
  SessionState(SessionIdentity identity, std::shared_ptr<User> user, runtime::ManagedDevice& home,
               Services services, std::shared_ptr<memory::Account> host, memory::Charge charge);

  // The device on which the session was opened.
  runtime::ManagedDevice& home() const { return *devices.home().device; }

  // For operations. Each operation is answered once, by Finish, Fail or Refuse.
  void Finish(Answer answer) ABSL_LOCKS_EXCLUDED(mutex);
  // Returns the span of a traced operation that is answered now; nullopt if it is not traced.
  std::optional<trace::Span> SpanOf(uint64_t sequence) const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  // Fails the operation and the handles that it would have bound.
  void Fail(uint64_t sequence, absl::Span<const uint64_t> handles, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex);
  // As Fail, and records the refusal in the log: for operations that log themselves.
  void Refuse(uint64_t sequence, absl::Span<const uint64_t> handles, const absl::Status& error)
      ABSL_LOCKS_EXCLUDED(mutex);
  // An executed operation has failed later, which the log does not have.
  void FailedLate(const absl::Status& why) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns the operation as LogExecuted takes it; empty if the session has no log.
  template <typename Kind>
  std::string Encoded(const Kind& operation) const {
    Encoder out;
    if (recorder) operation.EncodeForLog(out);
    return out.Take();
  }
  // Records an operation before any of its effects is visible.
  void LogExecuted(uint64_t sequence, absl::string_view encoded)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (recorder) recorder->Executed(sequence, encoded);
  }
  // Returns a function that calls `then`, and adds the time until then to the user's waits for
  // programs.
  std::function<void()> CountCompileWait(std::function<void()> then);
  bool IsReplaying() const ABSL_LOCKS_EXCLUDED(mutex);
  // Adds a Cancel that was received, unless an earlier daemon has received it.
  void AddCancelled(ReceivedCancel received) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  absl::Status CheckNotCancelled(uint64_t sequence) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Returns a failed value, charged to the session.
  runtime::ValuePointer MakeFailed(const absl::Status& error) const;

  // Executes what is queued. Operations are executed one at a time in the order of their sequence
  // numbers. Only a Run whose program is being compiled, or whose inputs are being copied to the
  // device, delays the operations after it. Answers are sent when an operation has ended, in any
  // order.
  void ExecuteQueued();
  // The lease; for a parked session at least the time for which it is kept.
  absl::Duration FullLease() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  // Starts a lease. Returns its duration.
  absl::Duration StartLease(absl::Duration lease) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The tables agree with one another: each received operation is pending or was answered, and a
  // closed session has nothing pending.
  void Validate() const ABSL_SHARED_LOCKS_REQUIRED(mutex);
  // How many entries Validate visits.
  int64_t entries() const ABSL_SHARED_LOCKS_REQUIRED(mutex) {
    return pending.size() + static_cast<int64_t>(cancelled.size());
  }

  const SessionIdentity identity;
  const std::shared_ptr<User> user;
  // The account for all host memory that the daemon holds for this session.
  const std::shared_ptr<memory::Account> host;
  const memory::Charge charge;  // for this object
  const Services services;
  DeviceShares devices;
  // Has its own lock, which is taken after this object's.
  Executor executor;

  // Taken before the locks of the executor, the log and the blobs. No thread holds the locks of two
  // sessions.
  mutable absl::Mutex mutex;
  std::optional<absl::Status> closed ABSL_GUARDED_BY(mutex);  // the status for later requests
  bool frozen ABSL_GUARDED_BY(mutex) = false;                 // closed, but its state is kept
  absl::Time expires ABSL_GUARDED_BY(mutex);                  // by the steady clock
  Stream stream ABSL_GUARDED_BY(mutex);
  AnswerLog answers ABSL_GUARDED_BY(mutex);
  PendingTable pending ABSL_GUARDED_BY(mutex);
  HandleTable handles ABSL_GUARDED_BY(mutex);
  ProgramTable programs ABSL_GUARDED_BY(mutex);
  // Values whose bytes are being copied to the device.
  absl::flat_hash_set<runtime::ValuePointer> being_copied ABSL_GUARDED_BY(mutex);
  // Received and not executed, by this daemon or the previous one; no more than the pending
  // operations.
  std::deque<ReceivedCancel> cancelled ABSL_GUARDED_BY(mutex);
  std::optional<Parked> parked ABSL_GUARDED_BY(mutex);
  uint64_t generation ABSL_GUARDED_BY(mutex) = 0;  // the number of takeovers
  // Over all received operations, executed or not.
  uint64_t highest_handle ABSL_GUARDED_BY(mutex) = 0;
  uint64_t highest_program ABSL_GUARDED_BY(mutex) = 0;
  int64_t runs ABSL_GUARDED_BY(mutex) = 0;
  double device_seconds ABSL_GUARDED_BY(mutex) = 0;

  // Null unless the session was restored and its pending operations are not executed yet.
  std::unique_ptr<Restoration> restoration ABSL_GUARDED_BY(mutex);
  uint64_t restored_through ABSL_GUARDED_BY(mutex) = 0;  // executed before the restoration
  bool is_replaying ABSL_GUARDED_BY(mutex) = false;      // its log
  absl::Status replay_error ABSL_GUARDED_BY(mutex);

  // Null if no checkpoints of the running session are taken. Its state is guarded by `mutex`.
  const std::unique_ptr<Recorder> recorder;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_STATE_H_
