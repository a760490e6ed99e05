#include "server/sessions/session.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"

namespace kiln::sessions {
namespace {

absl::Status SessionClosed() {
  return errors::WithReason(
      absl::NotFoundError("the session has been closed or has expired; open a new one"),
      "UNKNOWN_SESSION");
}

}  // namespace

Session::Session(Identity identity, std::shared_ptr<User> user, runtime::ManagedDevice& device,
                 Services services)
    : identity_(std::move(identity)),
      user_(std::move(user)),
      account_(std::make_shared<buffers::Account>(user_->account)),
      device_(device),
      services_(std::move(services)),
      flow_(device.dispatcher().AddFlow(user_->name, 1)),
      expires_(identity_.opened + identity_.lease) {}

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
    for (const auto& [bindings, future] : defined.instances) {
      if (future->resolved() && future->result().ok() && future->result()->get() == &program)
        return true;
    }
  }
  return false;
}

absl::Status Session::Attach(std::shared_ptr<Sink> sink, uint64_t acknowledged) {
  std::shared_ptr<Sink> earlier;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return SessionClosed();
    earlier = std::exchange(sink_, sink);
    refused_more_ = false;
    end_after_answers_ = false;
    log_.Acknowledge(acknowledged);
    sink->PushAttached(log_.last_received());
    for (auto& answer : log_.Unacknowledged()) sink->Push(std::move(answer));
  }
  sink->Flush();
  if (earlier) {
    earlier->Close(errors::WithReason(
        absl::AbortedError("another stream has attached to this session"), "REPLACED"));
  }
  return absl::OkStatus();
}

void Session::Detach(const Sink* sink) {
  absl::MutexLock lock(&mutex_);
  if (sink_.get() != sink) return;
  sink_.reset();
  expires_ = services_.now() + identity_.lease;
}

absl::Status Session::Accept(const Sink* sink, uint64_t sequence, uint64_t acknowledged,
                             Operation operation) {
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return SessionClosed();
    if (sink_.get() != sink)
      return absl::AbortedError("another stream has attached to this session");
    log_.Acknowledge(acknowledged);
    if (static_cast<int64_t>(log_.size()) > services_.limits.unacknowledged_answers ||
        log_.bytes() > services_.limits.unacknowledged_bytes) {
      return errors::WithReason(
          absl::ResourceExhaustedError(
              absl::StrCat(log_.size(), " answers of ", log_.bytes(),
                           " bytes have not been acknowledged; set ConnectRequest.acknowledged")),
          "UNACKNOWLEDGED");
    }
    const auto fresh = log_.Receive(sequence);
    if (!fresh.ok()) return fresh.status();
    if (!*fresh) return absl::OkStatus();
    ++unfinished_;
    queued_bytes_ += SizeOf(operation);
    queue_.push_back({sequence, std::move(operation)});
  }
  Pump();
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

bool Session::HasRoom() const {
  return unfinished_ < services_.limits.unfinished_operations &&
         queued_bytes_ < services_.limits.queued_bytes;
}

bool Session::WantsMore() {
  absl::MutexLock lock(&mutex_);
  refused_more_ = !HasRoom();
  return !refused_more_;
}

void Session::Pump() {
  const std::shared_ptr<Session> self = shared_from_this();
  while (true) {
    Queued next;
    std::shared_ptr<runtime::ProgramFuture> wait_for;
    {
      absl::MutexLock lock(&mutex_);
      if (executing_ || closed_ || queue_.empty()) return;
      wait_for = MustWaitFor(queue_.front().operation);
      if (!wait_for) {
        executing_ = true;
        next = std::move(queue_.front());
        queue_.pop_front();
        queued_bytes_ -= SizeOf(next.operation);
      } else if (wait_for == stalled_on_) {
        return;
      } else {
        stalled_on_ = wait_for;
      }
    }
    if (wait_for) {
      const auto resume = [self] {
        {
          absl::MutexLock lock(&self->mutex_);
          self->stalled_on_.reset();
        }
        self->Pump();
      };
      if (wait_for->AddWaiter(resume)) return;
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

std::shared_ptr<runtime::ProgramFuture> Session::Instance(const RunProgram& run) {
  const auto found = programs_.find(run.program);
  if (found == programs_.end() || !found->second.source.ok()) return nullptr;
  DefinedProgram& program = found->second;
  const runtime::GraphSource& source = **program.source;
  const auto known = program.instances.find(run.bindings);
  if (known != program.instances.end()) {
    const auto& future = known->second;
    // A failure is not final: memory may have become free. Only a binding that has never worked is
    // tried again.
    if (!future->resolved() || future->result().ok() || source.variables().empty()) return future;
  }
  if (!runtime::CheckBindings(source.variables(), run.bindings).ok()) return nullptr;
  if (known != program.instances.end()) return known->second;
  auto future = services_.programs->Get(*program.source, run.bindings, device_, program.name);
  program.instances.emplace(run.bindings, future);
  return future;
}

std::shared_ptr<runtime::ProgramFuture> Session::MustWaitFor(const Operation& operation) {
  const auto* run = std::get_if<RunProgram>(&operation);
  if (run == nullptr) return nullptr;
  auto future = Instance(*run);
  return future && !future->resolved() ? future : nullptr;
}

void Session::Execute(uint64_t sequence, UnknownOperation&) {
  Fail(sequence, {},
       errors::WithReason(
           absl::UnimplementedError("the request has no operation that this daemon knows; "
                                    "is the client newer than the daemon?"),
           "UNKNOWN_OPERATION"));
}

absl::Status Session::Define(const DefineProgram& operation,
                             std::shared_ptr<runtime::ProgramFuture>* future) {
  if (operation.program == 0 || !used_programs_.Insert(operation.program)) {
    return errors::WithReason(
        absl::InvalidArgumentError(
            absl::StrCat("program id ", operation.program,
                         operation.program == 0 ? " is not allowed; count from 1"
                                                : " has been used before; ids are never reused")),
        "PROGRAM_REUSED", {{"program", absl::StrCat(operation.program)}});
  }
  DefinedProgram& program = programs_[operation.program];
  program.source = operation.graph;
  program.name = operation.name;
  if (program.source.ok()) {
    if (absl::Status status = device_.CheckUsable(true); !status.ok()) program.source = status;
  }
  if (!program.source.ok()) return program.source.status();
  if (!(*program.source)->variables().empty()) return absl::OkStatus();
  *future = services_.programs->Get(*program.source, {}, device_, program.name);
  program.instances.emplace(runtime::Bindings{}, *future);
  return absl::OkStatus();
}

void Session::Execute(uint64_t sequence, DefineProgram& operation) {
  std::shared_ptr<runtime::ProgramFuture> future;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = Define(operation, &future);
  }
  if (!status.ok()) return Fail(sequence, {}, status);
  const auto self = shared_from_this();
  if (!future) {
    services_.programs->Check(
        *operation.graph, [self, sequence, key = (*operation.graph)->key()](absl::Status checked) {
          self->Finish({.sequence = sequence, .error = checked, .digest = checked.ok() ? key : ""});
        });
    return;
  }
  const auto compiled = [self, sequence, future] {
    const auto& result = future->result();
    self->Finish({.sequence = sequence,
                  .error = result.status(),
                  .digest = result.ok() ? (*result)->description().digest : ""});
  };
  if (!future->AddWaiter(compiled)) compiled();
}

absl::StatusOr<Session::Plan> Session::PlanRun(const RunProgram& operation) {
  const auto defined = programs_.find(operation.program);
  if (defined == programs_.end()) {
    const bool released = used_programs_.Contains(operation.program);
    return errors::WithReason(absl::NotFoundError(absl::StrCat(
                                  "program ", operation.program,
                                  released ? " has been released" : " is unknown in this session")),
                              "UNKNOWN_PROGRAM", {{"program", absl::StrCat(operation.program)}});
  }
  const auto& source = defined->second.source;
  if (!source.ok()) return source.status();
  if (absl::Status status = runtime::CheckBindings((*source)->variables(), operation.bindings);
      !status.ok())
    return status;
  const auto& result = Instance(operation)->result();
  if (!result.ok()) return result.status();
  Plan plan{*result, {}};
  const runtime::Signature& signature = plan.program->signature();
  plan.inputs.reserve(operation.inputs.size());
  for (const uint64_t handle : operation.inputs) {
    auto value = handles_.Find(handle);
    if (!value.ok()) return value.status();
    if ((*value)->resolved() && !(*value)->status().ok())
      return runtime::DependencyError((*value)->status());
    plan.inputs.push_back(std::move(*value));
  }
  if (absl::Status status = runtime::CheckInputs(signature, plan.inputs); !status.ok())
    return status;
  if (operation.outputs.size() != signature.outputs.size()) {
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "the program has ", signature.outputs.size(),
                                  " outputs, but the run names ", operation.outputs.size())),
                              "WRONG_OUTPUT_COUNT", {{"program", absl::StrCat(operation.program)}});
  }
  std::vector<uint64_t> updated;
  for (const int input : signature.updated_inputs) updated.push_back(operation.inputs[input]);
  std::sort(updated.begin(), updated.end());
  const auto twice = std::adjacent_find(updated.begin(), updated.end());
  if (twice != updated.end()) {
    return errors::WithReason(
        absl::InvalidArgumentError(
            absl::StrCat("handle ", *twice, " is bound to two inputs that the program updates")),
        "UPDATED_TWICE", {{"handle", absl::StrCat(*twice)}});
  }
  if (absl::Status status = handles_.CheckNew(operation.outputs); !status.ok()) return status;
  return plan;
}

void Session::BindResults(const RunProgram& operation, const runtime::Signature& signature,
                          const std::vector<runtime::ValuePointer>& results) {
  size_t next = 0;
  for (const uint64_t handle : operation.outputs) handles_.Bind(handle, results[next++]);
  for (const int input : signature.updated_inputs)
    handles_.Rebind(operation.inputs[input], results[next++]);
}

void Session::Execute(uint64_t sequence, RunProgram& operation) {
  absl::StatusOr<Plan> plan;
  {
    absl::MutexLock lock(&mutex_);
    ++runs_;
    plan = PlanRun(operation);
  }
  if (!plan.ok()) return Fail(sequence, operation.outputs, plan.status());
  auto run = runtime::Run::Create(
      plan->program, std::move(plan->inputs), account_,
      [self = shared_from_this(), sequence, report_time = operation.report_time](
          const absl::Status& status, double seconds) {
        self->RunEnded(sequence, report_time, status, seconds);
      });
  if (!run.ok()) return Fail(sequence, operation.outputs, run.status());
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) BindResults(operation, plan->program->signature(), (*run)->results());
  }
  device_.dispatcher().Enqueue(flow_, std::move(*run));
}

void Session::RunEnded(uint64_t sequence, bool report_time, const absl::Status& status,
                       double seconds) {
  user_->device_nanoseconds.fetch_add(static_cast<int64_t>(seconds * 1e9),
                                      std::memory_order_relaxed);
  {
    absl::MutexLock lock(&mutex_);
    device_seconds_ += seconds;
  }
  Finish({.sequence = sequence, .error = status, .device_seconds = report_time ? seconds : 0});
}

absl::StatusOr<runtime::ValuePointer> Session::MakeValue(const Write& operation) {
  if (absl::Status status = buffers::CheckTensorType(operation.type); !status.ok()) {
    return errors::WithReason(status, "BAD_TENSOR_TYPE",
                              {{"handle", absl::StrCat(operation.handle)}});
  }
  buffers::BlobStore::Blob blob;
  if (!operation.blob.empty()) {
    auto found = services_.blobs->Find(identity_.number, user_->name, operation.blob);
    if (!found.ok()) return found.status();
    blob = std::move(*found);
  }
  const std::string& data = blob ? *blob : operation.data;
  const auto type = std::make_shared<const buffers::TensorType>(operation.type);
  if (static_cast<int64_t>(data.size()) != type->bytes()) {
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "handle ", operation.handle, ": ", type->ToString(), " takes ",
                                  type->bytes(), " bytes, but ", data.size(), " are given")),
                              "SIZE_MISMATCH", {{"handle", absl::StrCat(operation.handle)}});
  }
  if (absl::Status status = device_.CheckUsable(false); !status.ok()) return status;
  auto value = device_.pool()->Allocate(type, account_);
  if (!value.ok()) return value.status();
  if (absl::Status status = device_.pool()->Fill(**value, data); !status.ok())
    return device_.AfterFailure(status);
  (*value)->Resolve(absl::OkStatus());
  services_.metrics->Received(static_cast<int64_t>(operation.data.size()));
  return value;
}

void Session::Execute(uint64_t sequence, Write& operation) {
  absl::Status is_new;
  {
    absl::MutexLock lock(&mutex_);
    is_new = handles_.CheckNew({operation.handle});
  }
  if (!is_new.ok()) return Fail(sequence, {}, is_new);
  auto value = MakeValue(operation);
  if (!value.ok()) return Fail(sequence, {operation.handle}, value.status());
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) handles_.Bind(operation.handle, std::move(*value));
  }
  Finish({.sequence = sequence});
}

void Session::Execute(uint64_t sequence, Read& operation) {
  absl::StatusOr<runtime::ValuePointer> value;
  {
    absl::MutexLock lock(&mutex_);
    value = handles_.Find(operation.handle);
  }
  if (!value.ok()) return Fail(sequence, {}, value.status());
  if ((*value)->bytes() > services_.limits.read_bytes) {
    return Fail(
        sequence, {},
        errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                               "handle ", operation.handle, " holds ", (*value)->bytes(),
                               " bytes; Read returns at most ", services_.limits.read_bytes,
                               ": use BlobService.Download")),
                           "TOO_LARGE_FOR_READ", {{"handle", absl::StrCat(operation.handle)}}));
  }
  const auto read = [self = shared_from_this(), sequence, value = *value](const absl::Status&) {
    self->FinishRead(sequence, value);
  };
  if (!(*value)->AddWaiter(read)) read(absl::OkStatus());
}

void Session::FinishRead(uint64_t sequence, const runtime::ValuePointer& value) {
  constexpr int64_t kCopyAtOnce = 64 << 10;
  if (!value->status().ok()) return Finish({.sequence = sequence, .error = value->status()});
  // This may be a thread of the device's, which must not be held up.
  if (buffers::Pool::IsHostMemory(*value) && value->bytes() <= kCopyAtOnce)
    return CopyOut(sequence, value);
  services_.copies->Schedule(
      [self = shared_from_this(), sequence, value] { self->CopyOut(sequence, value); });
}

void Session::CopyOut(uint64_t sequence, const runtime::ValuePointer& value) {
  Answer answer{.sequence = sequence};
  answer.data.resize(static_cast<size_t>(value->bytes()));
  answer.error = value->pool()->Read(*value, 0, absl::MakeSpan(answer.data));
  if (!answer.error.ok()) answer.data.clear();
  services_.metrics->Sent(static_cast<int64_t>(answer.data.size()));
  Finish(std::move(answer));
}

void Session::Execute(uint64_t sequence, Release& operation) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    for (const uint64_t handle : operation.handles) {
      absl::Status released = handles_.Release(handle);
      if (status.ok()) status = std::move(released);
    }
  }
  Finish({.sequence = sequence, .error = status});
}

void Session::Execute(uint64_t sequence, ReleaseProgram& operation) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    if (programs_.erase(operation.program) == 0) {
      status =
          errors::WithReason(absl::NotFoundError(absl::StrCat("program ", operation.program,
                                                              " is unknown in this session")),
                             "UNKNOWN_PROGRAM", {{"program", absl::StrCat(operation.program)}});
    }
  }
  Finish({.sequence = sequence, .error = status});
}

void Session::Execute(uint64_t sequence, Barrier&) {
  {
    absl::MutexLock lock(&mutex_);
    // What is queued comes after the barrier; the rest, but for the barrier itself, came before.
    const int64_t before = unfinished_ - static_cast<int64_t>(queue_.size()) - 1;
    if (before > 0) {
      barriers_.push_back({sequence, before});
      return;
    }
  }
  Finish({.sequence = sequence});
}

void Session::Fail(uint64_t sequence, absl::Span<const uint64_t> handles,
                   const absl::Status& error) {
  {
    absl::MutexLock lock(&mutex_);
    handles_.Poison(handles, error);
  }
  Finish({.sequence = sequence, .error = error});
}

void Session::CountDown(uint64_t sequence, std::vector<uint64_t>* ended) {
  --unfinished_;
  for (PendingBarrier& barrier : barriers_) {
    if (sequence < barrier.sequence && --barrier.remaining == 0) ended->push_back(barrier.sequence);
  }
  barriers_.erase(std::remove_if(barriers_.begin(), barriers_.end(),
                                 [](const auto& b) { return b.remaining == 0; }),
                  barriers_.end());
}

void Session::Finish(Answer answer) {
  if (!answer.error.ok()) services_.metrics->Failed(answer.error.code());
  std::vector<uint64_t> ended;
  std::shared_ptr<Sink> sink;
  bool read_more = false;
  bool end = false;
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    CountDown(answer.sequence, &ended);
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
      value = SessionClosed();
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
  expires_ = services_.now() + identity_.lease;
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
  {
    absl::MutexLock lock(&mutex_);
    if (closed_) return;
    closed_ = true;
    sink.swap(sink_);
    readers.swap(readers_);
    std::swap(handles, handles_);
    programs.swap(programs_);
    queue.swap(queue_);
  }
  device_.dispatcher().RemoveFlow(flow_);
  services_.blobs->EndSession(identity_.number);
  for (Reader& reader : readers) reader.done(status.ok() ? SessionClosed() : status);
  if (sink) sink->Close(status);
}

}  // namespace kiln::sessions
