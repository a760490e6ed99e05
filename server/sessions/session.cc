#include "server/sessions/session.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

// What later calls hear of a session that was closed with `status`.
absl::Status SaysClosed(const absl::Status& status) {
  if (!status.ok()) return status;
  return errors::WithReason(
      absl::NotFoundError("the session has been closed or has expired; open a new one"),
      "UNKNOWN_SESSION");
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
      account_(std::make_shared<buffers::Account>(user_->account)),
      host_(std::move(host)),
      charge_(std::move(charge)),
      device_(device),
      services_(std::move(services)),
      flow_(device.dispatcher().AddFlow(user_->name, 1)),
      expires_(identity_.opened + identity_.lease),
      small_(host_->Open(memory::Use::kOperations)),
      handles_charge_(host_->Open(memory::Use::kHandles)) {}

Session::Snapshot Session::GetSnapshot() const {
  absl::MutexLock lock(&mutex_);
  Snapshot snapshot;
  snapshot.connected = sink_ != nullptr;
  snapshot.expires = snapshot.connected ? services_.now() + identity_.lease : expires_;
  snapshot.memory_bytes = account_->bytes();
  snapshot.buffers = account_->buffers();
  snapshot.programs = static_cast<int64_t>(programs_.size());
  snapshot.runs = runs_;
  snapshot.device_seconds = device_seconds_;
  return snapshot;
}

bool Session::Uses(const runtime::Program& program) const {
  absl::MutexLock lock(&mutex_);
  for (const auto& [id, defined] : programs_) {
    for (const auto& [bindings, instance] : defined.instances) {
      const runtime::ProgramFuture& future = *instance.future;
      if (future.resolved() && future.result().ok() &&
          (*future.result())->program.get() == &program)
        return true;
    }
  }
  return false;
}

absl::Status Session::Attach(std::shared_ptr<Sink> sink, uint64_t acknowledged) {
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return *closed_;
    earlier = std::exchange(sink_, sink);
    refused_more_ = false;
    end_after_answers_ = false;
    log_.Acknowledge(acknowledged);
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
  absl::MutexLock lock(&mutex_);
  if (sink_.get() != sink) return;
  sink_.reset();
  StartLease("stream_detached");
}

absl::Status Session::Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                             Operation operation) {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return *closed_;
    if (sink_.get() != sink) return Replaced();
    log_.Acknowledge(acknowledged);
    if (absl::Status status = CheckAcknowledged(); !status.ok()) return status;
    const auto fresh = log_.Receive(sequence);
    if (!fresh.ok()) return fresh.status();
    if (!*fresh) return absl::OkStatus();
    Admit(sequence, &operation);
    queue_.push_back({sequence, std::move(operation)});
  }
  ExecuteQueued();
  return absl::OkStatus();
}

void Session::EndAfterAnswers(const Sink* sink) {
  std::shared_ptr<Sink> ended;
  {
    absl::MutexLock lock(&mutex_);
    if (sink_.get() != sink) return;
    if (unfinished_ == 0) ended = sink_;
    end_after_answers_ = true;
  }
  if (ended) ended->Close(absl::OkStatus());
}

bool Session::WantsMore() {
  absl::MutexLock lock(&mutex_);
  refused_more_ = !HasRoom();
  return !refused_more_;
}

void Session::ExecuteQueued() {
  Queued next;
  std::shared_ptr<runtime::ProgramFuture> wait_for;
  while (TakeNext(&next, &wait_for)) {
    if (wait_for) {
      if (wait_for->AddWaiter([self = shared_from_this()] { self->Resume(); })) return;
      absl::MutexLock lock(&mutex_);
      stalled_on_.reset();
      continue;
    }
    std::visit([&](auto& operation) { Execute(next.sequence, operation); }, next.operation);
    bool readers = false;
    {
      absl::MutexLock lock(&mutex_);
      executing_ = false;
      executed_ = next.sequence;
      readers = !readers_.empty();
    }
    if (readers) NotifyReaders();
  }
}

bool Session::TakeNext(Queued* next, std::shared_ptr<runtime::ProgramFuture>* wait_for) {
  absl::MutexLock lock(&mutex_);
  if (executing_ || closed_ || queue_.empty()) return false;
  *wait_for = MustWaitFor(queue_.front());
  if (*wait_for) {
    // Somebody waits for it already.
    if (*wait_for == stalled_on_) return false;
    stalled_on_ = *wait_for;
    return true;
  }
  executing_ = true;
  *next = std::move(queue_.front());
  queue_.pop_front();
  return true;
}

void Session::Resume() {
  {
    absl::MutexLock lock(&mutex_);
    stalled_on_.reset();
  }
  ExecuteQueued();
}

void Session::Fail(uint64_t sequence, absl::Span<const uint64_t> handles,
                   const absl::Status& error) {
  const absl::Status bounded = errors::WithBoundedMessage(error);
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_ && !handles.empty() && ReserveHandles(handles.size()).ok()) {
      memory::Charge charge = host_->Open(memory::Use::kHandles);
      charge.ForceResize(errors::BytesOf(bounded));
      handles_.Poison(handles, bounded, std::move(charge));
      SettleHandles();
    }
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
  std::vector<uint64_t> ended;
  std::shared_ptr<Sink> sink;
  bool read_more = false;
  bool end = false;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    CountDown(answer.sequence, &ended);
    answer.charge = host_->Open(memory::Use::kAnswers);
    answer.charge.ForceResize(SizeOf(answer));
    auto shared = std::make_shared<const Answer>(std::move(answer));
    log_.Add(shared);
    sink = sink_;
    if (sink) sink->Push(std::move(shared));
    end = end_after_answers_ && unfinished_ == 0;
    read_more = refused_more_ && HasRoom();
    if (read_more) refused_more_ = false;
  }
  if (sink) {
    sink->Flush();
    if (read_more) sink->ReadMore();
    if (end) sink->Close(absl::OkStatus());
  }
  for (const uint64_t barrier : ended) Finish({.sequence = barrier});
}

void Session::NotifyReaders() {
  std::vector<Reader> ready;
  {
    absl::MutexLock lock(&mutex_);
    for (size_t i = 0; i < readers_.size();) {
      if (readers_[i].after_sequence > executed_) {
        ++i;
        continue;
      }
      ready.push_back(std::move(readers_[i]));
      readers_.erase(readers_.begin() + static_cast<int64_t>(i));
    }
  }
  for (Reader& reader : ready)
    WhenReadable(reader.handle, reader.after_sequence, std::move(reader.done));
}

void Session::WhenReadable(uint64_t handle, uint64_t after_sequence,
                           std::function<void(absl::StatusOr<runtime::ValuePointer>)> done) {
  absl::StatusOr<runtime::ValuePointer> value;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) {
      value = *closed_;
    } else if (executed_ < after_sequence) {
      readers_.push_back({handle, after_sequence, std::move(done)});
      return;
    } else {
      value = handles_.Find(handle);
    }
  }
  if (!value.ok()) return done(value.status());
  const auto answer = [value = *value, done](const absl::Status& status) {
    if (status.ok()) return done(value);
    done(status);
  };
  if (!(*value)->AddWaiter(answer)) answer((*value)->status());
}

void Session::Renew() {
  absl::MutexLock lock(&mutex_);
  StartLease("lease_renewed");
}

void Session::StartLease(absl::string_view event) {
  expires_ = services_.now() + identity_.lease;
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug(event,
             {{"session", identity_.name},
              {"lease_seconds", absl::StrCat(absl::ToDoubleSeconds(identity_.lease))},
              {"expires", absl::FormatTime(absl::RFC3339_full, expires_, absl::UTCTimeZone())}});
}

bool Session::Expired() const {
  absl::MutexLock lock(&mutex_);
  return sink_ == nullptr && services_.now() >= expires_;
}

void Session::Close(const absl::Status& status) {
  std::shared_ptr<Sink> sink;
  std::vector<Reader> readers;
  HandleTable handles;
  std::map<uint64_t, DefinedProgram> programs;
  std::deque<Queued> queue;
  absl::flat_hash_map<uint64_t, Large> large;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    closed_ = SaysClosed(status);
    sink.swap(sink_);
    readers.swap(readers_);
    std::swap(handles, handles_);
    programs.swap(programs_);
    queue.swap(queue_);
    large.swap(large_);
    small_.Release();
    handles_charge_.Release();
  }
  device_.dispatcher().RemoveFlow(flow_);
  services_.blobs->EndSession(identity_.number);
  for (Reader& reader : readers) reader.done(SaysClosed(status));
  if (sink) sink->Close(status);
}

}  // namespace kiln::sessions
