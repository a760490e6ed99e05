#include "server/sessions/session_state.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/run/together.h"

namespace kiln::sessions {
namespace {

Executor::Steps StepsOf(SessionState& session) {
  return {.must_wait_for =
              [&session](uint64_t sequence, const Operation& operation) {
                return MustWaitFor(operation, session, sequence);
              },
          .execute = [&session](uint64_t sequence,
                                Operation& operation) { Execute(operation, session, sequence); }};
}

std::unique_ptr<Recorder> RecorderFor(SessionState& session) {
  const bool has_checkpoints = session.identity.checkpoint_interval > absl::ZeroDuration();
  if (!has_checkpoints || !session.services.new_recorder) return nullptr;
  return session.services.new_recorder(session);
}

}  // namespace

int64_t Parked::BytesOf(const std::vector<NamedHandle>& tensors) {
  constexpr int64_t kPerName = 128;
  return kPerName * (1 + static_cast<int64_t>(tensors.size()));
}

SessionState::SessionState(SessionIdentity identity, std::shared_ptr<User> user,
                           runtime::ManagedDevice& home, Services services,
                           std::shared_ptr<memory::Account> host, memory::Charge charge)
    : identity(std::move(identity)),
      user(std::move(user)),
      host(std::move(host)),
      charge(std::move(charge)),
      services(std::move(services)),
      devices(*this->user, this->identity.priority, home, this->services.devices),
      executor(StepsOf(*this)),
      expires(this->services.clock.steady() + this->identity.lease),
      pending(this->host,
              {this->services.limits.pending_operations, this->services.limits.pending_bytes},
              &this->user->operations),
      handles(this->host),
      programs({this->services.programs, &home, this->services.devices, this->host,
                this->services.limits.bindings_per_program, this->user->name,
                &this->user->programs}),
      recorder(RecorderFor(*this)) {}

void SessionState::ExecuteQueued() {
  Executor::Run(std::shared_ptr<Executor>(shared_from_this(), &executor));
}

void SessionState::Finish(Answer answer) {
  if (!answer.error.ok()) {
    services.metrics->Failed(answer.error.code());
    log::Debug("operation_failed",
               {{"session", identity.name},
                {"operation", absl::StrCat(identity.name, "/", answer.sequence)},
                {"status", answer.error.ToString()}});
  }
  std::vector<uint64_t> barriers;
  std::optional<PendingOperation> ended;  // destroyed without the lock
  std::shared_ptr<Sink> sink;
  std::optional<trace::Span> span;
  bool read_more = false;
  bool end = false;
  {
    absl::MutexLock lock(&mutex);
    if (closed) return;
    ended = pending.TakeExecuted(answer.sequence);
    if (trace::IsOn(services.trace_recorder)) span = SpanOf(answer.sequence);
    barriers = pending.End(answer.sequence);
    answer.charge = host->Open(memory::Use::kAnswers);
    // Never refused, since every operation must be answered. Accept ends a stream whose client lets
    // answers accumulate.
    answer.charge.ForceResize(SizeOf(answer));
    auto shared = std::make_shared<const Answer>(std::move(answer));
    answers.Add(shared);
    sink = stream.sink;
    if (sink) sink->Push(std::move(shared));
    end = stream.end_after_answers && pending.empty();
    read_more = stream.refused_more && pending.HasRoom();
    if (read_more) stream.refused_more = false;
    KILN_VALIDATE(*this, entries());
  }
  if (span) services.trace_recorder->Add(*std::move(span));
  if (sink) {
    runtime::Together::Call([sink] { sink->Flush(); });
    if (read_more) sink->ReadMore();
    if (end) sink->Close(absl::OkStatus());
  }
  for (const uint64_t barrier : barriers) Finish({.sequence = barrier});
}

std::optional<trace::Span> SessionState::SpanOf(uint64_t sequence) const {
  const auto found = pending.entries().find(sequence);
  if (found == pending.entries().end() || found->second.name.empty()) return std::nullopt;
  return trace::Span{.kind = trace::Kind::kOperation,
                     .start = found->second.received,
                     .duration = services.trace_recorder->now() - found->second.received,
                     .name = std::string(found->second.name),
                     .user = user->name,
                     .session = identity.name,
                     .detail = absl::StrCat(identity.name, "/", sequence)};
}

void SessionState::Fail(uint64_t sequence, absl::Span<const uint64_t> new_handles,
                        const absl::Status& error) {
  KILN_CHECK(!error.ok()) << "operation " << sequence << " failed without an error";
  // A failed handle keeps its error, and everything that uses it repeats the error. An error that
  // is explained already remains as it is.
  const absl::Status bounded =
      IsReplaying() ? error : errors::WithBoundedMessage(user->Explain(error));
  {
    absl::MutexLock lock(&mutex);
    if (!closed) handles.BindFailed(new_handles, bounded);
  }
  Finish({.sequence = sequence, .error = bounded});
}

void SessionState::Refuse(uint64_t sequence, absl::Span<const uint64_t> new_handles,
                          const absl::Status& error) {
  KILN_CHECK(!error.ok()) << "operation " << sequence << " was refused without an error";
  if (recorder) {
    const absl::Status bounded = errors::WithBoundedMessage(user->Explain(error));
    const std::string encoded = Encoded(Refused{bounded, {new_handles.begin(), new_handles.end()}});
    absl::MutexLock lock(&mutex);
    // Operations from the log were not refused the first time.
    if (is_replaying) replay_error.Update(error);
    LogExecuted(sequence, encoded);
  }
  Fail(sequence, new_handles, error);
}

void SessionState::FailedLate(const absl::Status& why) {
  KILN_CHECK(!why.ok());
  if (closed) return;
  if (is_replaying) replay_error.Update(why);
  if (recorder) recorder->FailedLate(why);
}

std::function<void()> SessionState::CountCompileWait(std::function<void()> then) {
  return [self = shared_from_this(), since = services.clock.steady(), then = std::move(then)] {
    const absl::Duration waited = self->services.clock.steady() - since;
    self->user->compile_wait_nanoseconds.fetch_add(absl::ToInt64Nanoseconds(waited),
                                                   std::memory_order_relaxed);
    then();
  };
}

bool SessionState::IsReplaying() const {
  if (!recorder) return false;
  absl::MutexLock lock(&mutex);
  return is_replaying;
}

void SessionState::AddCancelled(ReceivedCancel received) {
  if (cancelled.empty() || cancelled.back().cancel < received.cancel) cancelled.push_back(received);
}

absl::Status SessionState::CheckNotCancelled(uint64_t sequence) const {
  for (const ReceivedCancel& received : cancelled)
    if (sequence >= received.first && sequence < received.cancel) return runtime::CancelledRun();
  return absl::OkStatus();
}

runtime::ValuePointer SessionState::MakeFailed(const absl::Status& error) const {
  KILN_CHECK(!error.ok());
  memory::Charge error_charge = host->Open(memory::Use::kHandles);
  error_charge.ForceResize(errors::BytesOf(error));
  return buffers::Value::Failed(error, std::move(error_charge));
}

absl::Duration SessionState::FullLease() const {
  return parked ? std::max(identity.lease, parked->keep) : identity.lease;
}

absl::Duration SessionState::StartLease(absl::Duration lease) {
  expires = services.clock.steady() + lease;
  return lease;
}

void SessionState::Validate() const {
  KILN_CHECK(closed || !frozen);
  KILN_CHECK(!closed || !closed->ok());
  uint64_t before = 0;
  for (const ReceivedCancel& received : cancelled) {
    KILN_CHECK_GT(received.cancel, before);
    before = received.cancel;
  }
  if (parked) {
    KILN_CHECK(!parked->name.empty());
    KILN_CHECK_LE(parked->tensors.size(), kNamedTensorsMax);
    KILN_CHECK_EQ(parked->charge.bytes(), Parked::BytesOf(parked->tensors));
  }
  if (closed && !frozen) {
    KILN_CHECK(stream.sink == nullptr);
    KILN_CHECK(pending.empty());
    KILN_CHECK(restoration == nullptr);
    return;
  }
  KILN_CHECK_EQ(answers.last_received(), pending.ended() + static_cast<uint64_t>(pending.size()));
  KILN_CHECK_LE(answers.highest(), answers.last_received());
  for (const auto& [sequence, entry] : pending.entries()) {
    KILN_CHECK_LE(sequence, answers.last_received());
    KILN_CHECK(!answers.Has(sequence)) << "operation " << sequence << " is answered and pending";
  }
  // Each is the value of one pending operation.
  KILN_CHECK_LE(being_copied.size(), pending.size());
}

}  // namespace kiln::sessions
