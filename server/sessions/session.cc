#include "server/sessions/session.h"

#include <algorithm>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/run/together.h"

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
      absl::NotFoundError("the session is lost with its tensors and programs: what the daemon had "
                          "written of it is older than what this client has seen; open a new one "
                          "and load the last checkpoint"),
      "SESSION_LOST");
}

absl::Status Replaced() {
  return errors::WithReason(absl::AbortedError("another stream has attached to this session"),
                            "REPLACED");
}

}  // namespace

Session::Session(Identity identity, std::shared_ptr<User> user, runtime::ManagedDevice& device,
                 Services services, std::shared_ptr<memory::Account> host, memory::Charge charge)
    : identity_(std::move(identity)),
      user_(std::move(user)),
      host_(std::move(host)),
      charge_(std::move(charge)),
      services_(std::move(services)),
      devices_(*user_, identity_.priority, device, services_.devices),
      executor_(Steps()),
      expires_(services_.clock.steady() + identity_.lease),
      unfinished_(host_,
                  {services_.limits.unfinished_operations, services_.limits.unfinished_bytes},
                  &user_->operations),
      handles_(host_),
      programs_({services_.programs, &device, services_.devices, host_,
                 services_.limits.bindings_per_program, user_->name, &user_->programs}) {}

Executor::Steps Session::Steps() {
  Executor::Steps steps;
  steps.must_wait_for = [this](uint64_t sequence, const Operation& operation) {
    if (const auto* run = std::get_if<RunProgram>(&operation)) return MustWaitFor(sequence, *run);
    const auto* resume = std::get_if<sessions::Resume>(&operation);
    return resume == nullptr ? nullptr : MustWaitFor(*resume);
  };
  steps.execute = [this](uint64_t sequence, Operation& operation) {
    if (wants_protection()) JournalFirst(sequence, operation);
    std::visit([&](auto& kind) { Execute(sequence, kind); }, operation);
  };
  return steps;
}

Executor::AddWaiter Session::MustWaitFor(uint64_t sequence, const RunProgram& run) {
  absl::MutexLock lock(&mutex_);
  if (!CheckNotCancelled(sequence).ok()) return nullptr;
  if (auto future = programs_.MustWaitFor(sequence, run)) {
    return [future = std::move(future)](std::function<void()> resume) {
      return future->AddWaiter(std::move(resume));
    };
  }
  // On the device, the run would block all other runs until the upload has ended.
  for (size_t i = 0; !uploads_.empty() && i < run.inputs.size(); ++i) {
    const auto value = handles_.Find(run.inputs[i]);
    if (!value.ok() || !uploads_.contains(*value) || (*value)->resolved()) continue;
    return [value = *value, copies = services_.copies](std::function<void()> resume) {
      // The waiter is called on the device's thread, which has other copies to do.
      return value->AddWaiter(
          [copies, resume = std::move(resume)](const absl::Status&) { copies->Schedule(resume); });
    };
  }
  return nullptr;
}

Session::Snapshot Session::GetSnapshot() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot;
  snapshot.connected = sink_ != nullptr;
  snapshot.expires =
      snapshot.connected ? services_.clock.wall() + FullLease() : OnWall(services_.clock, expires_);
  if (detached_) snapshot.detached_name = detached_->name;
  snapshot.memory_bytes = devices_.bytes();
  snapshot.buffers = devices_.buffers();
  snapshot.programs = static_cast<int64_t>(programs_.size());
  snapshot.runs = runs_;
  snapshot.waiting = unfinished_.size();
  snapshot.device_seconds = device_seconds_;
  if (protection_.has_image) snapshot.protected_since = protection_.image_time;
  return snapshot;
}

bool Session::Uses(const runtime::Program& program) const {
  absl::MutexLock lock(&mutex_);
  return programs_.Names(program);
}

absl::Status Session::Attach(std::shared_ptr<Sink> sink, uint64_t acknowledged,
                             uint64_t generation) {
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return *closed_;
    if (generation != generation_) return TakenOver();
    if (acknowledged > log_.last_received() && wants_protection()) {
      // It is closed when leases are checked next.
      expires_ = services_.clock.steady();
      return IsBehind();
    }
    earlier = std::exchange(sink_, sink);
    refused_more_ = false;
    end_after_answers_ = false;
    log_.Acknowledge(acknowledged);
    // Under the lock, so that no new answer is sent before those that the client has missed.
    sink->PushAttached(log_.last_received());
    for (auto& answer : log_.Unacknowledged()) sink->Push(std::move(answer));
  }
  log::Debug("stream_attached", {{"session", identity_.name},
                                 {"acknowledged", absl::StrCat(acknowledged)},
                                 {"replaces_another", earlier ? "yes" : "no"}});
  sink->Flush();
  if (earlier) {
    earlier->Close(Replaced());
  }
  return absl::OkStatus();
}

void Session::Detach(const Sink* sink) {
  absl::Duration lease;
  {
    absl::MutexLock lock(&mutex_);
    // Another stream is attached, so the lease does not run.
    if (sink_.get() != sink) return;
    sink_.reset();
    lease =
        StartLease(detached_ ? detached_->keep : std::min(identity_.lease, identity_.away_lease));
  }
  LogLease("stream_detached", lease);
}

absl::Status Session::Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                             Operation operation, bool travels_alone) {
  bool drops = false;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return *closed_;
    if (sink_.get() != sink) return Replaced();
    log_.Acknowledge(acknowledged);
    const SessionLimits& limits = services_.limits;
    if (absl::Status status =
            log_.CheckAcknowledged({limits.unacknowledged_answers, limits.unacknowledged_bytes},
                                   host_->memory().IsShort());
        !status.ok()) {
      return status;
    }
    const auto fresh = log_.Receive(sequence);
    if (!fresh.ok()) return fresh.status();
    // Sent again by a client that could not know that it had arrived. It is answered once.
    if (!*fresh) return absl::OkStatus();
    if (const auto* cancel = std::get_if<Cancel>(&operation)) drops = CancelRuns(sequence, *cancel);
    highest_handle_ = HighestHandle(operation, highest_handle_);
    highest_program_ = HighestProgram(operation, highest_program_);
    unfinished_.Admit(sequence, &operation, travels_alone);
    // With the lock held: an earlier stream of this session may still be adding its last operation.
    executor_.Add(sequence, std::move(operation));
  }
  if (drops) devices_.StopUnwanted();
  ExecuteQueued();
  return absl::OkStatus();
}

void Session::EndAfterAnswers(const Sink* sink) {
  std::shared_ptr<Sink> ended;
  {
    absl::MutexLock lock(&mutex_);
    if (sink_.get() != sink) return;
    if (unfinished_.empty()) ended = sink_;
    end_after_answers_ = true;
  }
  if (ended) ended->Close(absl::OkStatus());
}

bool Session::WantsMore() {
  absl::MutexLock lock(&mutex_);
  refused_more_ = !unfinished_.HasRoom();
  return !refused_more_;
}

void Session::Fail(uint64_t sequence, absl::Span<const uint64_t> handles,
                   const absl::Status& error) {
  // A failed handle keeps its error, and everything that uses it repeats the error. An error that
  // is explained already remains as it is.
  const absl::Status bounded =
      IsReplaying() ? error : errors::WithBoundedMessage(user_->Explain(error));
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) handles_.Poison(handles, bounded);
  }
  Finish({.sequence = sequence, .error = bounded});
}

void Session::Finish(Answer answer) {
  if (!answer.error.ok()) {
    services_.metrics->Failed(answer.error.code());
    log::Debug("operation_failed",
               {{"session", identity_.name},
                {"operation", absl::StrCat(identity_.name, "/", answer.sequence)},
                {"status", answer.error.ToString()}});
  }
  std::vector<uint64_t> barriers;
  InFlightTable::node_type ended;  // destroyed without the lock: values and programs take others
  std::shared_ptr<Sink> sink;
  bool read_more = false;
  bool end = false;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    barriers = unfinished_.End(answer.sequence);
    ended = in_flight_.extract(answer.sequence);
    answer.charge = host_->Open(memory::Use::kAnswers);
    // Never refused, since every operation must be answered. Accept ends a stream whose client lets
    // answers accumulate.
    answer.charge.ForceResize(SizeOf(answer));
    auto shared = std::make_shared<const Answer>(std::move(answer));
    log_.Add(shared);
    sink = sink_;
    if (sink) sink->Push(std::move(shared));
    end = end_after_answers_ && unfinished_.empty();
    read_more = refused_more_ && unfinished_.HasRoom();
    if (read_more) refused_more_ = false;
  }
  if (sink) {
    runtime::Together::Call([sink] { sink->Flush(); });
    if (read_more) sink->ReadMore();
    if (end) sink->Close(absl::OkStatus());
  }
  for (const uint64_t barrier : barriers) Finish({.sequence = barrier});
}

void Session::WhenReadable(uint64_t handle, uint64_t after_sequence,
                           std::function<void(absl::StatusOr<runtime::ValuePointer>)> done) {
  {
    absl::MutexLock lock(&mutex_);
    after_sequence = std::max(after_sequence, resumed_through_);
  }
  executor_.WhenExecuted(after_sequence,
                         [this, handle, done = std::move(done)] { WhenThere(handle, done); });
}

void Session::WhenThere(uint64_t handle,
                        const std::function<void(absl::StatusOr<runtime::ValuePointer>)>& done) {
  absl::StatusOr<runtime::ValuePointer> value;
  {
    absl::MutexLock lock(&mutex_);
    value = closed_ ? *closed_ : handles_.Find(handle);
  }
  if (!value.ok()) return done(value.status());
  const auto answer = [value = *value, done](const absl::Status& status) {
    if (status.ok()) return done(value);
    done(status);
  };
  if (!(*value)->AddWaiter(answer)) answer((*value)->status());
}

void Session::Renew() {
  absl::Duration lease;
  {
    absl::MutexLock lock(&mutex_);
    lease = StartLease();
  }
  LogLease("lease_renewed", lease);
}

absl::Duration Session::FullLease() const {
  return detached_ ? std::max(identity_.lease, detached_->keep) : identity_.lease;
}

absl::Duration Session::StartLease() { return StartLease(FullLease()); }

absl::Duration Session::StartLease(absl::Duration lease) {
  expires_ = services_.clock.steady() + lease;
  return lease;
}

absl::Status Session::CheckOpen() const {
  absl::MutexLock lock(&mutex_);
  return closed_ ? *closed_ : absl::OkStatus();
}

void Session::LogLease(absl::string_view event, absl::Duration left) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  const absl::Time expires = services_.clock.wall() + left;
  log::Debug(event,
             {{"session", identity_.name},
              {"lease_seconds", absl::StrCat(absl::ToDoubleSeconds(identity_.lease))},
              {"expires", absl::FormatTime(absl::RFC3339_full, expires, absl::UTCTimeZone())}});
}

void Session::DropLost(const runtime::ManagedDevice& device) {
  std::vector<runtime::ValuePointer> lost;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  if (closed_) return;
  lost = handles_.FailLost(device.pool()->LostError());
  if (!lost.empty()) FailedLate(device.pool()->LostError());
}

bool Session::is_closed() const {
  absl::MutexLock lock(&mutex_);
  return closed_.has_value();
}

bool Session::Expired() const {
  absl::MutexLock lock(&mutex_);
  return sink_ == nullptr && services_.clock.steady() >= expires_;
}

void Session::Close(const absl::Status& status, bool files_stay) {
  std::shared_ptr<Sink> sink;
  // Destroyed without the lock, because values and programs have their own locks.
  Executor::Dropped dropped;
  absl::flat_hash_map<uint64_t, runtime::ValuePointer> values;
  std::map<uint64_t, DefinedProgram> programs;
  InFlightTable in_flight;
  std::unique_ptr<Resumption> resumption;
  absl::btree_map<uint64_t, UnfinishedRuns::Entry> runs;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_ && !frozen_) return;
    if (protection_.journal && !frozen_ && !files_stay) protection_.journal->Discard();
    protection_ = {};
    frozen_ = false;
    closed_ = SaysClosed(status);
    sink.swap(sink_);
    dropped = executor_.Close();
    values = handles_.TakeAll();
    programs = programs_.TakeAll();
    in_flight.swap(in_flight_);
    resumption.swap(resumption_);
    runs = unfinished_runs_.TakeAll();
    unfinished_.Clear();
  }
  devices_.RemoveFlows();
  for (const auto& [sequence, unfinished] : runs)
    unfinished.run->Stop(absl::CancelledError("the session has ended"));
  if (!runs.empty()) devices_.StopUnwanted();
  services_.blobs->EndSession(identity_.number);
  services_.names->Release(identity_.number);
  for (const auto& waiter : dropped.waiters) waiter();
  if (sink) sink->Close(status);
}

}  // namespace kiln::sessions
