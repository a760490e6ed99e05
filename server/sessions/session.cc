#include "server/sessions/session.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// The status of later calls to a session that was closed with `status`.
absl::Status SaysClosed(const absl::Status& status) {
  if (!status.ok()) return status;
  return errors::WithReason(
      absl::NotFoundError("the session has been closed or has expired; open a new one"),
      "UNKNOWN_SESSION");
}

// The machine has rebooted since, or a file was truncated.
absl::Status IsBehind() {
  return errors::WithReason(
      absl::NotFoundError("the session and its tensors and programs are lost: the daemon's "
                          "checkpoint of it is older than the results that this client has "
                          "received; open a new session and load your last saved state"),
      "SESSION_LOST");
}

absl::Status Replaced() {
  return errors::WithReason(absl::AbortedError("another stream has attached to this session"),
                            "REPLACED");
}

absl::Status TakenOver() {
  return errors::WithReason(
      absl::AbortedError("another process took over this session by its name"), "TAKEN_OVER");
}

absl::Status BeingRestored(absl::string_view why) {
  return errors::WithReason(absl::UnavailableError(why), "RESTARTING");
}

}  // namespace

absl::Status Session::Connect(std::shared_ptr<Sink> sink, uint64_t acknowledged,
                              uint64_t generation) {
  KILN_CHECK(sink != nullptr);
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->closed) return *state_->closed;
    if (generation != state_->generation) return TakenOver();
    if (acknowledged > state_->answers.last_received() && state_->recorder) {
      // It is closed when leases are checked next.
      state_->expires = state_->services.clock.steady();
      return IsBehind();
    }
    earlier = std::exchange(state_->stream, {.sink = sink}).sink;
    state_->answers.Acknowledge(acknowledged);
    // Under the lock, so that no new answer is sent before those that the client has missed.
    sink->PushAttached(state_->answers.last_received());
    for (auto& answer : state_->answers.Unacknowledged()) sink->Push(std::move(answer));
    KILN_VALIDATE(*state_, state_->entries());
  }
  log::Debug("stream_attached", {{"session", identity().name},
                                 {"acknowledged", absl::StrCat(acknowledged)},
                                 {"replaces_another", earlier ? "yes" : "no"}});
  sink->Flush();
  if (earlier) earlier->Close(Replaced());
  return absl::OkStatus();
}

void Session::Disconnect(const Sink* sink) {
  absl::Duration lease;
  {
    absl::MutexLock lock(&state_->mutex);
    // Another stream is connected, so the lease does not run.
    if (state_->stream.sink.get() != sink) return;
    state_->stream.sink.reset();
    lease = state_->StartLease(state_->parked ? state_->parked->keep
                                              : std::min(identity().lease, identity().away_lease));
  }
  LogLease("stream_detached", lease);
}

absl::Status Session::Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                             Operation operation, bool travels_alone) {
  bool drops = false;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->closed) return *state_->closed;
    if (state_->stream.sink.get() != sink) return Replaced();
    state_->answers.Acknowledge(acknowledged);
    const SessionLimits& limits = state_->services.limits;
    if (absl::Status status = state_->answers.CheckAcknowledged(
            {limits.unacknowledged_answers, limits.unacknowledged_bytes},
            host()->memory().IsShort());
        !status.ok()) {
      return status;
    }
    const auto fresh = state_->answers.Receive(sequence);
    if (!fresh.ok()) return fresh.status();
    // Sent again by a client that could not know that it had arrived. It is answered once.
    if (!*fresh) return absl::OkStatus();
    drops = Receive(operation, *state_, sequence);
    for (const uint64_t handle : NewHandles(operation))
      state_->highest_handle = std::max(state_->highest_handle, handle);
    state_->highest_program = std::max(state_->highest_program, NewProgram(operation));
    const std::string_view name = NameOf(operation);
    state_->pending.Admit(sequence, &operation, travels_alone);
    if (trace::Recorder* const recorder = state_->services.trace_recorder; trace::IsOn(recorder))
      state_->pending.SetReceived(sequence, name, recorder->now());
    // With the lock held: an earlier stream of this session may still be adding its last operation.
    state_->executor.Add(sequence, std::move(operation));
    KILN_CHECK_EQ(state_->answers.last_received(), sequence);
    KILN_VALIDATE(*state_, state_->entries());
  }
  if (drops) devices().StopUnwanted();
  state_->ExecuteQueued();
  return absl::OkStatus();
}

void Session::EndAfterAnswers(const Sink* sink) {
  std::shared_ptr<Sink> ended;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->stream.sink.get() != sink) return;
    if (state_->pending.empty()) ended = state_->stream.sink;
    state_->stream.end_after_answers = true;
  }
  if (ended) ended->Close(absl::OkStatus());
}

bool Session::WantsMore() {
  absl::MutexLock lock(&state_->mutex);
  state_->stream.refused_more = !state_->pending.HasRoom();
  return !state_->stream.refused_more;
}

void Session::WhenReadable(uint64_t handle, uint64_t after_sequence,
                           std::function<void(absl::StatusOr<runtime::ValuePointer>)> done) {
  {
    absl::MutexLock lock(&state_->mutex);
    after_sequence = std::max(after_sequence, state_->restored_through);
  }
  state_->executor.WhenExecuted(after_sequence, [&state = *state_, handle, done = std::move(done)] {
    absl::StatusOr<runtime::ValuePointer> value;
    {
      absl::MutexLock lock(&state.mutex);
      value = state.closed ? *state.closed : state.handles.Find(handle);
    }
    if (!value.ok()) return done(value.status());
    const auto answer = [value = *value, done](const absl::Status& status) {
      if (status.ok()) return done(value);
      done(status);
    };
    if (!(*value)->AddWaiter(answer)) answer((*value)->status());
  });
}

void Session::HoldsBlob(const std::string& name) {
  if (state_->recorder) state_->recorder->HoldsBlob(name);
}

void Session::DeletedBlobs(const std::vector<std::string>& names) {
  if (state_->recorder) state_->recorder->DeletedBlobs(names);
}

absl::StatusOr<Takeover> Session::TakeOver() {
  Takeover takeover;
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->closed) return *state_->closed;
    // Not all of its tensors are restored.
    if (state_->restoration) return BeingRestored("the session is being restored; attach again");
    // Operations of the previous client that have not been executed would be lost if the daemon
    // restarted now: the new client does not have them to send them again.
    if (state_->executor.executed() < state_->answers.last_received()) {
      return BeingRestored(
          "the session is still processing operations of its previous client; attach again");
    }
    ++state_->generation;
    // The new client may use the numbers that the previous one has not sent again.
    state_->cancelled.clear();
    if (state_->recorder) state_->recorder->TakenOver(state_->generation);
    takeover.id = absl::StrCat(identity().id, ".", state_->generation);
    takeover.last_sequence = state_->answers.last_received();
    takeover.last_handle = state_->highest_handle;
    takeover.last_program = state_->highest_program;
    takeover.tensors = NamedTensors();
    state_->StartLease(state_->FullLease());
    earlier = std::exchange(state_->stream, {}).sink;
    KILN_VALIDATE(*state_, state_->entries());
  }
  if (earlier) earlier->Close(TakenOver());
  return takeover;
}

std::vector<Takeover::Tensor> Session::NamedTensors() const {
  std::vector<Takeover::Tensor> tensors;
  if (!state_->parked) return tensors;
  for (const NamedHandle& tensor : state_->parked->tensors) {
    const auto value = state_->handles.Find(tensor.handle);
    if (!value.ok()) continue;  // the client has released it since
    const std::shared_ptr<const buffers::TensorType>& type = (*value)->type();
    tensors.push_back({tensor, type ? *type : buffers::TensorType(), (*value)->placement(),
                       (*value)->pool() ? (*value)->pool()->device().info().name : ""});
  }
  return tensors;
}

absl::Status Session::CheckGeneration(uint64_t generation) const {
  absl::MutexLock lock(&state_->mutex);
  return generation == state_->generation ? absl::OkStatus() : TakenOver();
}

void Session::RenewLease() {
  absl::Duration lease;
  {
    absl::MutexLock lock(&state_->mutex);
    lease = state_->StartLease(state_->FullLease());
  }
  LogLease("lease_renewed", lease);
}

bool Session::HasExpired() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->stream.sink == nullptr && state_->services.clock.steady() >= state_->expires;
}

absl::Status Session::CheckOpen() const {
  absl::MutexLock lock(&state_->mutex);
  return state_->closed ? *state_->closed : absl::OkStatus();
}

void Session::LogLease(absl::string_view event, absl::Duration left) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  const absl::Time expires = state_->services.clock.wall() + left;
  log::Debug(event,
             {{"session", identity().name},
              {"lease_seconds", absl::StrCat(absl::ToDoubleSeconds(identity().lease))},
              {"expires", absl::FormatTime(absl::RFC3339_full, expires, absl::UTCTimeZone())}});
}

void Session::DropLost(const runtime::ManagedDevice& device) {
  std::vector<runtime::ValuePointer> lost;  // destroyed without the lock
  absl::MutexLock lock(&state_->mutex);
  if (state_->closed) return;
  lost = state_->handles.FailLost(device.pool()->LostError());
  if (!lost.empty()) state_->FailedLate(device.pool()->LostError());
  KILN_VALIDATE(*state_, state_->entries());
}

void Session::Close(const absl::Status& status, bool files_stay) {
  std::shared_ptr<Sink> sink;
  // Destroyed without the lock, because values and programs have their own locks.
  Executor::Dropped dropped;
  absl::flat_hash_map<uint64_t, runtime::ValuePointer> values;
  std::map<uint64_t, DefinedProgram> programs;
  PendingTable::Entries pending;
  std::unique_ptr<Restoration> restoration;
  {
    absl::MutexLock lock(&state_->mutex);
    if (state_->closed && !state_->frozen) return;
    if (state_->recorder) state_->recorder->Close(files_stay || state_->frozen);
    state_->frozen = false;
    state_->closed = SaysClosed(status);
    sink.swap(state_->stream.sink);
    dropped = state_->executor.Close();
    values = state_->handles.TakeAll();
    programs = state_->programs.TakeAll();
    pending = state_->pending.TakeAll();
    restoration.swap(state_->restoration);
    KILN_VALIDATE(*state_, state_->entries());
  }
  devices().RemoveFlows();
  bool has_runs = false;
  for (const auto& [sequence, entry] : pending) {
    const auto* run = entry.executed ? std::get_if<PendingRun>(&*entry.executed) : nullptr;
    if (run == nullptr || run->run == nullptr) continue;
    run->run->Stop(absl::CancelledError("the session was closed"));
    has_runs = true;
  }
  if (has_runs) devices().StopUnwanted();
  state_->services.blobs->CloseSession(identity().number);
  state_->services.names->Release(identity().number);
  for (const auto& waiter : dropped.waiters) waiter();
  if (sink) sink->Close(status);
}

}  // namespace kiln::sessions
