// Restores a saved session: first its tables, then, through the executor, the operations that had
// not been answered.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/buffers/blob_name.h"
#include "server/buffers/whole.h"
#include "server/errors/errors.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

using Kind = SessionImage::Value::Kind;

absl::Status Fill(const runtime::ValuePointer& value, ByteSource& bytes, Patience& patience) {
  for (int64_t offset = 0; offset < value->bytes(); offset += kValuePieceBytes) {
    const auto piece = std::make_shared<std::string>();
    piece->resize(static_cast<size_t>(std::min(kValuePieceBytes, value->bytes() - offset)));
    if (absl::Status status = bytes.Read(absl::MakeSpan(*piece)); !status.ok()) return status;
    const absl::Status filled = patience.Await([&](Patience::Done done) {
      buffers::FillWhole(
          *value, offset, *piece,
          [piece, value, done = std::move(done)](const absl::Status& status) { done(status); });
    });
    if (!filled.ok()) return filled;
  }
  return absl::OkStatus();
}

absl::Status Ended() { return absl::CancelledError("the session was closed"); }

}  // namespace

absl::Status Session::Restore(std::shared_ptr<const SessionImage> image, ByteSource& bytes,
                              Patience& patience) {
  absl::MutexLock lock(&mutex_);
  resumption_ = std::make_unique<Resumption>();
  resumption_->image = std::move(image);
  // Lowered limits take nothing away. Operations that are executed again take device memory, too.
  devices_.SetExempt(true);
  host_->SetExempt(true);
  const absl::Status status = RestoreAll(bytes, patience);
  host_->SetExempt(false);
  return status;
}

absl::Status Session::RestoreAll(ByteSource& bytes, Patience& patience) {
  absl::Status status = RestoreValues(bytes, patience);
  if (status.ok()) status = RestoreBlobs(bytes);
  if (status.ok()) status = RestorePrograms();
  if (status.ok()) status = RestoreHandles();
  if (status.ok()) status = RestoreOperations();
  if (status.ok()) RestoreName();
  expires_ = services_.clock.steady() + resumption_->image->lease_then();
  return status;
}

absl::Status Session::RestoreValues(ByteSource& bytes, Patience& patience) {
  for (const SessionImage::Value& kept : resumption_->image->values) {
    runtime::ValuePointer value;
    if (kept.kind == Kind::kFailed) {
      memory::Charge charge = host_->Open(memory::Use::kHandles);
      charge.ForceResize(errors::BytesOf(kept.error));
      value = buffers::Value::Failed(kept.error, std::move(charge));
    } else if (kept.kind == Kind::kBytes) {
      auto allocated =
          AllocateAt(std::make_shared<const buffers::TensorType>(kept.type), kept.place);
      if (!allocated.ok()) return allocated.status();
      value = *std::move(allocated);
      if (absl::Status status = Fill(value, bytes, patience); !status.ok()) return status;
      value->Resolve(absl::OkStatus());
    }
    resumption_->values.push_back(std::move(value));
  }
  return absl::OkStatus();
}

absl::Status Session::RestoreBlobs(ByteSource& bytes) {
  for (const SessionImage::Blob& blob : resumption_->image->blobs) {
    auto upload = services_.blobs->BeginAgain(identity_.number, user_->name, blob.name,
                                              static_cast<uint64_t>(blob.size), *host_);
    absl::Status status = upload.status();
    std::string piece;
    for (int64_t offset = 0; offset < blob.size; offset += kValuePieceBytes) {
      piece.resize(static_cast<size_t>(std::min(kValuePieceBytes, blob.size - offset)));
      if (absl::Status read = bytes.Read(absl::MakeSpan(piece)); !read.ok()) return read;
      if (status.ok()) status = (*upload)->Append({piece});
    }
    if (status.ok()) status = (*upload)->Finish();
    // Sessions that shared a blob now have a copy each, for which there may be no memory. For a
    // missing digest, FindBlobs tells the client to send it again; other blobs are not sent again.
    if (!status.ok() && buffers::DigestIn(blob.name).empty()) return status;
  }
  return absl::OkStatus();
}

absl::Status Session::RestorePrograms() {
  const SessionImage& image = *resumption_->image;
  for (const auto& origin : image.origins) {
    auto source = services_.unpack_graph(origin->wire, *host_);
    if (!source.ok()) return source.status();
    resumption_->sources.push_back(*std::move(source));
  }
  programs_.RestoreUsed(image.used_programs);
  for (const SessionImage::Program& program : image.programs) {
    if (program.error.ok()) {
      programs_.Restore(program.number, resumption_->sources[program.origin],
                        image.origins[program.origin]);
    } else {
      programs_.Restore(program.number, program.error, std::make_shared<ProgramOrigin>());
    }
  }
  for (const SessionImage::Pending& pending : image.pending) {
    const auto* run = std::get_if<SessionImage::Run>(&pending.operation);
    resumption_->programs.push_back(
        run == nullptr ? nullptr
                       : programs_.CompileAgain(resumption_->sources[run->origin],
                                                *image.origins[run->origin], run->bindings));
  }
  return absl::OkStatus();
}

absl::Status Session::RestoreHandles() {
  const SessionImage& image = *resumption_->image;
  if (absl::Status status = handles_.Restore(image.used_handles, image.handles.size());
      !status.ok()) {
    return status;
  }
  // The other handles are bound once their values are made, before the client's operations are
  // executed.
  for (const auto& [handle, place] : image.handles)
    if (resumption_->values[place]) handles_.RestoreValue(handle, resumption_->values[place]);
  return absl::OkStatus();
}

void Session::RestoreName() {
  const SessionImage& image = *resumption_->image;
  generation_ = image.generation;
  highest_handle_ = image.used_handles.last();
  highest_program_ = image.used_programs.last();
  if (!image.detached) return;
  memory::Charge charge = host_->Open(memory::Use::kHandles);
  charge.ForceResize(BytesOf(image.detached->tensors));
  detached_.emplace(Detached{image.detached->name, image.detached->keep, image.detached->tensors,
                             std::move(charge)});
}

absl::Status Session::RestoreOperations() {
  const SessionImage& image = *resumption_->image;
  runs_ = image.runs;
  device_seconds_ = image.device_seconds;
  resumed_through_ = image.executed;
  log_.RestoreReceived(image.executed);
  cancelled_.assign(image.cancelled.begin(), image.cancelled.end());
  for (const SessionImage::KeptAnswer& kept : image.answers) {
    Answer answer{.sequence = kept.sequence,
                  .error = kept.error,
                  .value = kept.value ? resumption_->values[*kept.value] : nullptr,
                  .digest = kept.digest,
                  .device_seconds = kept.device_seconds};
    answer.charge = host_->Open(memory::Use::kAnswers);
    answer.charge.ForceResize(SizeOf(answer));
    log_.Add(std::make_shared<const Answer>(std::move(answer)));
  }
  unfinished_.RestoreEnded(image.executed - image.pending.size());
  for (size_t i = 0; i < image.pending.size(); ++i) {
    const uint64_t sequence = image.pending[i].sequence;
    Operation operation = sessions::Resume{i};
    unfinished_.Admit(sequence, &operation);
    // It waits for the earlier operations that have not been answered.
    if (std::holds_alternative<SessionImage::Barrier>(image.pending[i].operation)) {
      in_flight_.emplace(sequence, BarrierInFlight());
      if (i > 0) unfinished_.RestoreBarrier(sequence, i);
    }
    // Sequence number 0: requests that wait for a value wait until all are resumed and the handles
    // are bound.
    executor_.Add(0, std::move(operation));
  }
  executor_.Add(image.executed, sessions::Resume{image.pending.size()});
  return absl::OkStatus();
}

Executor::AddWaiter Session::MustWaitFor(const sessions::Resume& resume) {
  absl::MutexLock lock(&mutex_);
  if (!resumption_ || resume.pending >= resumption_->programs.size()) return nullptr;
  const auto& future = resumption_->programs[resume.pending];
  if (!future || future->resolved()) return nullptr;
  return [future](std::function<void()> go_on) { return future->AddWaiter(std::move(go_on)); };
}

void Session::Execute(uint64_t, sessions::Resume& operation) {
  std::shared_ptr<const SessionImage> image;
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return;
    image = resumption_->image;
  }
  if (operation.pending == image->pending.size()) return EndResuming();
  const SessionImage::Pending& pending = image->pending[operation.pending];
  std::visit([&](const auto& kind) { Redo(pending.sequence, operation.pending, kind); },
             pending.operation);
}

void Session::EndResuming() {
  std::unique_ptr<Resumption> ended;  // destroyed without the lock
  absl::MutexLock lock(&mutex_);
  ended.swap(resumption_);
  devices_.SetExempt(replaying_);
  if (closed_ || !ended) return;
  for (const auto& [handle, place] : ended->image->handles)
    if (ended->image->values[place].kind == Kind::kPending)
      handles_.RestoreValue(handle, ended->values[place]);
}

absl::StatusOr<Session::MadeRun> Session::MakeAgain(uint64_t sequence, size_t pending,
                                                    const SessionImage::Run& run) {
  RunInFlight in_flight{nullptr, run.bindings, {}, {}, run.report_time};
  std::shared_ptr<runtime::ProgramFuture> future;
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return Ended();
    future = resumption_->programs[pending];
    in_flight.program = resumption_->image->origins[run.origin];
    for (const size_t input : run.inputs) in_flight.inputs.push_back(resumption_->values[input]);
  }
  if (!future->result().ok()) return future->result().status();
  const std::shared_ptr<const runtime::BoundProgram>& program = *future->result();
  for (const runtime::ValuePointer& input : in_flight.inputs)
    if (input->resolved() && !input->status().ok())
      return runtime::DependencyError(input->status());
  const runtime::Signature& signature = program->signature;
  absl::Status status = runtime::CheckInputs(signature, in_flight.inputs);
  if (status.ok()) status = CheckLiesOn(*program->program, in_flight.inputs);
  if (status.ok() && signature.outputs.size() + signature.updates.size() != run.results.size())
    status = absl::InternalError("a run in the checkpoint does not match its program");
  if (!status.ok()) return status;
  auto made = MakeRun(sequence, program, in_flight.inputs, run.report_time);
  if (!made.ok()) return made.status();
  in_flight.results = made->run->results();
  absl::MutexLock lock(&mutex_);
  if (!resumption_) return Ended();
  for (size_t i = 0; i < run.results.size(); ++i)
    resumption_->values[run.results[i]] = in_flight.results[i];
  in_flight_.emplace(sequence, std::move(in_flight));
  return made;
}

void Session::FailResults(size_t pending, const SessionImage::Run& run,
                          const runtime::ValuePointer& failed) {
  const auto& program = resumption_->programs[pending]->result();
  const size_t updates = program.ok() ? (*program)->signature.updated_inputs.size() : 0;
  const size_t outputs = run.results.size() - std::min(updates, run.results.size());
  for (size_t i = 0; i < run.results.size(); ++i) {
    resumption_->values[run.results[i]] =
        i < outputs ? failed
                    : resumption_->values[run.inputs[static_cast<size_t>(
                          (*program)->signature.updated_inputs[i - outputs])]];
  }
}

void Session::Redo(uint64_t sequence, size_t pending, const SessionImage::Run& run) {
  auto made = MakeAgain(sequence, pending, run);
  if (made.ok()) return made->enqueue();
  // The run has not begun, so it changes no state: the inputs that it would have updated keep their
  // values. Later operations that use its outputs fail.
  const absl::Status error = errors::WithBoundedMessage(made.status());
  memory::Charge charge = host_->Open(memory::Use::kHandles);
  charge.ForceResize(errors::BytesOf(error));
  const auto failed = buffers::Value::Failed(error, std::move(charge));
  {
    absl::MutexLock lock(&mutex_);
    if (resumption_) FailResults(pending, run, failed);
    FailedLate(error);
  }
  Finish({.sequence = sequence, .error = error});
}

void Session::Redo(uint64_t sequence, size_t, const SessionImage::Definition& definition) {
  std::shared_ptr<const runtime::GraphSource> source;
  std::shared_ptr<const ProgramOrigin> origin;
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return;
    source = resumption_->sources[definition.origin];
    origin = resumption_->image->origins[definition.origin];
    in_flight_.emplace(sequence, DefinitionInFlight{origin});
  }
  AwaitDefinition(
      sequence, source,
      source->variables().empty() ? programs_.CompileAgain(source, *origin, {}) : nullptr,
      runtime::Admission::kAgain);
}

void Session::Redo(uint64_t sequence, size_t, const SessionImage::Move& move) {
  runtime::ValuePointer source;
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return;
    source = resumption_->values[move.source];
  }
  absl::StatusOr<runtime::ValuePointer> target =
      source->resolved() && !source->status().ok()
          ? absl::StatusOr<runtime::ValuePointer>(runtime::DependencyError(source->status()))
          : AllocateAt(source->type(), move.place);
  absl::Status error;
  if (!target.ok()) {
    error = errors::WithBoundedMessage(target.status());
    memory::Charge charge = host_->Open(memory::Use::kHandles);
    charge.ForceResize(errors::BytesOf(error));
    target = buffers::Value::Failed(error, std::move(charge));
  }
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return;
    resumption_->values[move.target] = *target;
    if (error.ok()) {
      uploads_.insert(*target);
      in_flight_.emplace(sequence, MoveInFlight{source, *target, move.place});
    } else {
      FailedLate(error);
    }
  }
  if (!error.ok()) return Finish({.sequence = sequence, .error = error});
  BeginMove(sequence, source, *target);
}

void Session::Redo(uint64_t sequence, size_t, const SessionImage::Read& read) {
  runtime::ValuePointer value;
  {
    absl::MutexLock lock(&mutex_);
    if (!resumption_) return;
    value = resumption_->values[read.value];
  }
  AwaitRead(sequence, value);
}

void Session::Redo(uint64_t sequence, size_t pending, const SessionImage::Barrier&) {
  // Otherwise it ends with the last operation before it.
  if (pending == 0) Finish({.sequence = sequence});
}

}  // namespace kiln::sessions
