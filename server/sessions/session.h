// The lifecycle of one client's session: who is connected to it, how long it lives, and its end.
// Its operations are executed in order and exactly once (session_state.h).
#ifndef KILN_SERVER_SESSIONS_SESSION_H_
#define KILN_SERVER_SESSIONS_SESSION_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {

// For lists and metrics.
struct SessionStats {
  absl::Time expires;
  bool connected = false;
  int64_t memory_bytes = 0;
  int64_t buffers = 0;
  int64_t programs = 0;
  int64_t runs = 0;
  int64_t waiting = 0;  // operations received that have not ended
  double device_seconds = 0;
  std::string parked_name;  // empty if it was not parked
  // InfinitePast while the session would not survive SIGKILL of the daemon.
  absl::Time checkpoint_time = absl::InfinitePast();
};

// For a process that takes over a session by its name. It continues with numbers above these.
struct Takeover {
  struct Tensor {
    NamedHandle named;
    buffers::TensorType type;
    // Null: the tensor is on one device.
    std::shared_ptr<const buffers::Placement> placement;
    std::string device;  // if on one device; empty for a failed tensor
  };
  std::string id;
  uint64_t last_sequence = 0;
  uint64_t last_handle = 0;
  uint64_t last_program = 0;
  std::vector<Tensor> tensors;
};

// Thread-safe.
class Session {
 public:
  Session(SessionIdentity identity, std::shared_ptr<User> user, runtime::ManagedDevice& device,
          Services services, std::shared_ptr<memory::Account> host, memory::Charge charge)
      : state_(std::make_shared<SessionState>(std::move(identity), std::move(user), device,
                                              std::move(services), std::move(host),
                                              std::move(charge))) {}

  const SessionIdentity& identity() const { return state_->identity; }
  const User& user() const { return *state_->user; }
  // Shared by all sessions of the user.
  quota::Meter& uploads_of_user() const { return state_->user->uploads; }
  quota::Gate& upload_bytes_of_user() const { return state_->user->upload_bytes; }
  // The device on which it was opened.
  runtime::ManagedDevice& device() const { return state_->home(); }
  // That device and all others that it has used.
  DeviceShares& devices() { return state_->devices; }
  // The account for all host memory that the daemon holds for this session.
  const std::shared_ptr<memory::Account>& host() const { return state_->host; }
  // For checkpoint/.
  SessionState& state() const { return *state_; }

  // Connects a new stream; an earlier one ends with ABORTED. Pushes Attached and the unacknowledged
  // answers. Of a closed session, returns why it was closed; NOT_FOUND if the user closed it.
  // ABORTED: the session was taken over and has another generation. Requires: `sink` is not null.
  absl::Status Connect(std::shared_ptr<Sink> sink, uint64_t acknowledged, uint64_t generation = 0);
  // The stream has ended. Starts the lease, unless another stream is connected.
  void Disconnect(const Sink* sink);
  // Accepts one operation of the connected stream. An error ends the stream, not the session.
  // `travels_alone`: see PendingTable::Admit.
  absl::Status Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                      Operation operation, bool travels_alone = true);
  // The client sends no more on this stream. Ends it once everything has been answered.
  void EndAfterAnswers(const Sink* sink);
  // False: do not read the stream until Sink::ReadMore is called.
  bool WantsMore();

  // Calls `done` with the handle's value once the operations up to `after_sequence` have been
  // executed and the value is available, or with the error if it is not. `done` may be called
  // before this returns.
  void WhenReadable(uint64_t handle, uint64_t after_sequence,
                    std::function<void(absl::StatusOr<runtime::ValuePointer>)> done);
  // Records that the session owns a blob, or does not own these any more. Called before its client
  // is told.
  void HoldsBlob(const std::string& name);
  void DeletedBlobs(const std::vector<std::string>& names);

  // The session gets another id; its stream, if there is one, ends with TAKEN_OVER, and so do
  // requests with an earlier id.
  absl::StatusOr<Takeover> TakeOver();
  // Compares with the number of takeovers, which is part of the id. ABORTED, TAKEN_OVER, if they
  // differ.
  absl::Status CheckGeneration(uint64_t generation) const;

  void RenewLease();
  bool HasExpired() const;
  bool is_closed() const { return !CheckOpen().ok(); }
  // OK while it is open; otherwise the status that Connect returns.
  absl::Status CheckOpen() const;
  // Called when a lost device works again: handles whose values were on it, entirely or in part,
  // fail from here on.
  void DropLost(const runtime::ManagedDevice& device);

  SessionStats GetStats() const;
  // True if one of its program ids refers to `program`.
  bool Uses(const runtime::Program& program) const;
  // The progress of programs that are not ready or whose first run has not been answered.
  std::vector<ProgramTable::Waiting> FirstCalls() const;
  // The session's holdings of a resource, for refusals (quota::WithHolders); for device memory its
  // largest values.
  std::vector<quota::Holder> HoldersOf(quota::Resource resource) const;

  // Stops execution; operations that arrive are queued. Returns once nothing is being executed.
  void Pause() { state_->executor.Pause(); }
  // Executes the pending operations of a restored session again, then new ones.
  void StartExecuting() { state_->ExecuteQueued(); }
  // Drops everything and ends the stream with `status`. Runs on the device are stopped if the
  // device supports it; their results are dropped. The files of the session's checkpoint are
  // removed, unless it is frozen or `files_stay`: they are then for the next daemon.
  void Close(const absl::Status& status, bool files_stay = false);

 private:
  // Called without the lock, because the reader of the log may be slow. `event` says what has
  // happened.
  void LogLease(absl::string_view event, absl::Duration left) const;
  std::vector<quota::Holder> LargestValues() const;
  std::vector<Takeover::Tensor> NamedTensors() const ABSL_SHARED_LOCKS_REQUIRED(state_->mutex);

  const std::shared_ptr<SessionState> state_;
};

}  // namespace kiln::sessions

#endif  // KILN_SERVER_SESSIONS_SESSION_H_
