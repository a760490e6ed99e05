// Execution of operations on programs: define, run, release.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// Checks the number of outputs, and that no handle is updated twice. Requires: the inputs were
// checked.
absl::Status CheckResults(const RunProgram& operation, const runtime::Signature& signature) {
  if (operation.outputs.size() != signature.outputs.size()) {
    return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  "the program has ", signature.outputs.size(),
                                  " outputs, but the run names ", operation.outputs.size())),
                              "WRONG_OUTPUT_COUNT", {{"program", absl::StrCat(operation.program)}});
  }
  std::vector<uint64_t> updated;
  updated.reserve(signature.updated_inputs.size());
  for (const int input : signature.updated_inputs) updated.push_back(operation.inputs[input]);
  std::sort(updated.begin(), updated.end());
  const auto twice = std::adjacent_find(updated.begin(), updated.end());
  if (twice == updated.end()) return absl::OkStatus();
  return errors::WithReason(
      absl::InvalidArgumentError(
          absl::StrCat("handle ", *twice, " is given for two inputs that the program updates")),
      "UPDATED_TWICE", {{"handle", absl::StrCat(*twice)}});
}

}  // namespace

void Session::Execute(uint64_t sequence, DefineProgram& operation) {
  const bool again = IsReplaying();
  if (operation.graph.ok() && !again) {
    // The error is stored with the program.
    const absl::Status fits = user_->graph_nodes.Check((*operation.graph)->nodes());
    if (!fits.ok()) operation.graph = fits;
  }
  const auto admission = again ? runtime::Admission::kAgain : runtime::Admission::kAsked;
  const std::string encoded = wants_protection() ? EncodeOperation(operation) : "";
  absl::StatusOr<std::shared_ptr<runtime::ProgramFuture>> defined;
  {
    absl::MutexLock lock(&mutex_);
    defined = programs_.Define(operation, admission);
    auto origin = programs_.OriginOf(operation.program);
    if (defined.ok() && origin && !closed_)
      in_flight_.emplace(sequence, DefinitionInFlight{std::move(origin)});
    if (defined.ok()) {
      JournalExecuted(sequence, encoded);
    } else {
      JournalRefusedDefinition(sequence, operation, defined.status());
    }
  }
  if (!defined.ok()) return Fail(sequence, {}, defined.status());
  if (log::IsOn(log::Level::kDebug)) {
    log::Debug("program_defined", {{"session", identity_.name},
                                   {"operation", absl::StrCat(identity_.name, "/", sequence)},
                                   {"id", absl::StrCat(operation.program)},
                                   {"name", runtime::ShortName(operation.name)},
                                   {"source", runtime::ShortDigest((*operation.graph)->key())}});
  }
  AwaitDefinition(sequence, *operation.graph, *defined, admission);
}

void Session::AwaitDefinition(uint64_t sequence, std::shared_ptr<const runtime::GraphSource> source,
                              const std::shared_ptr<runtime::ProgramFuture>& future,
                              runtime::Admission admission) {
  const auto self = shared_from_this();
  if (!future) {
    services_.programs->Check(
        source, host_,
        [self, sequence, key = source->key()](absl::Status checked) {
          self->Finish({.sequence = sequence, .error = checked, .digest = checked.ok() ? key : ""});
        },
        admission);
    return;
  }
  const auto compiled = [self, sequence, future] {
    const auto& result = future->result();
    self->Finish({.sequence = sequence,
                  .error = self->user_->Explain(result.status()),
                  .digest = result.ok() ? (*result)->program->description().digest : ""});
  };
  if (!future->AddWaiter(compiled)) compiled();
}

absl::StatusOr<Session::Plan> Session::PlanRun(uint64_t sequence, const RunProgram& operation) {
  if (absl::Status status = CheckNotCancelled(sequence); !status.ok()) return status;
  auto program = programs_.Find(sequence, operation);
  if (!program.ok()) return program.status();
  Plan plan{std::move(*program), {}, programs_.OriginOf(operation.program)};
  const runtime::Signature& signature = plan.program->signature;
  plan.inputs.reserve(operation.inputs.size());
  for (const uint64_t handle : operation.inputs) {
    auto value = handles_.Find(handle);
    if (!value.ok()) return value.status();
    if ((*value)->resolved() && !(*value)->status().ok()) {
      return runtime::DependencyError((*value)->status());
    }
    plan.inputs.push_back(std::move(*value));
  }
  absl::Status status = runtime::CheckInputs(signature, plan.inputs);
  if (status.ok()) status = CheckLiesOn(*plan.program->program, plan.inputs);
  if (status.ok()) status = CheckResults(operation, signature);
  if (status.ok()) status = handles_.Reserve(operation.outputs);
  if (!status.ok()) return status;
  return plan;
}

void Session::BindResults(uint64_t sequence, RunProgram& operation,
                          const runtime::Signature& signature,
                          const std::shared_ptr<runtime::Run>& run) {
  const absl::Span<const runtime::ValuePointer> results = run->results();
  size_t next = operation.outputs.size();
  handles_.Bind(operation.outputs, results.first(next));
  UnfinishedRuns::Entry entry;
  entry.run = run;
  for (const auto& output : results.first(next)) entry.output_values.push_back(output.get());
  entry.updates.reserve(signature.updated_inputs.size());
  for (const int input : signature.updated_inputs) {
    const runtime::ValuePointer& after = results[next++];
    const uint64_t handle = operation.inputs[input];
    entry.updates.push_back({handle, handles_.Rebind(handle, after), after.get()});
  }
  entry.outputs = std::move(operation.outputs);
  unfinished_runs_.Add(sequence, std::move(entry));
}

void Session::Execute(uint64_t sequence, RunProgram& operation) {
  absl::StatusOr<Plan> plan;
  {
    absl::MutexLock lock(&mutex_);
    ++runs_;
    plan = PlanRun(sequence, operation);
  }
  if (!plan.ok()) return Refuse(sequence, operation.outputs, plan.status());
  const std::string encoded = wants_protection() ? EncodeOperation(operation) : "";
  RunInFlight in_flight{plan->origin, operation.bindings, plan->inputs, {}, operation.report_time};
  auto made = MakeRun(sequence, plan->program, std::move(plan->inputs), operation.report_time);
  if (!made.ok()) return Refuse(sequence, operation.outputs, made.status());
  absl::Status cancelled;
  {
    absl::MutexLock lock(&mutex_);
    cancelled = CheckNotCancelled(sequence);
    if (!closed_ && cancelled.ok()) {
      // In the same critical section as the check, so that Cancel sees either both or neither.
      JournalExecuted(sequence, encoded);
      BindResults(sequence, operation, plan->program->signature, made->run);
      in_flight.results = made->run->results();
      if (in_flight.program) in_flight_.emplace(sequence, std::move(in_flight));
    }
  }
  if (!cancelled.ok()) return Refuse(sequence, operation.outputs, cancelled);
  made->enqueue();
}

absl::StatusOr<Session::MadeRun> Session::MakeRun(
    uint64_t sequence, const std::shared_ptr<const runtime::BoundProgram>& program,
    std::vector<runtime::ValuePointer> inputs, bool report_time) {
  absl::InlinedVector<const UsedDevice*, 1> used;
  absl::InlinedVector<std::shared_ptr<buffers::Account>, 1> accounts;
  for (const runtime::ShardedProgram::Member& member : program->program->sharded().members()) {
    used.push_back(&devices_.Of(*member.device));
    accounts.push_back(used.back()->account);
  }
  auto run = runtime::Run::Create(
      absl::StrCat(identity_.name, "/", sequence), program, std::move(inputs), accounts,
      services_.submission_order,
      [self = shared_from_this(), sequence, report_time](
          const absl::Status& status, absl::Span<const runtime::Run::DeviceTime> times) {
        self->RunEnded(sequence, report_time, status, times);
      });
  if (!run.ok()) return run.status();
  return MadeRun{*run, [used = std::move(used), run = *run] {
                   const auto work = run->MakeWork();
                   for (size_t i = 0; i < work.size(); ++i)
                     used[i]->device->dispatcher().Enqueue(used[i]->flow, work[i]);
                 }};
}

void Session::RunEnded(uint64_t sequence, bool report_time, const absl::Status& status,
                       absl::Span<const runtime::Run::DeviceTime> times) {
  double seconds = 0;  // of the slowest device
  double all_seconds = 0;
  for (const runtime::Run::DeviceTime& time : times) {
    DeviceUse& use = user_->devices.at(time.device->name());
    use.nanoseconds.fetch_add(static_cast<int64_t>(time.seconds * 1e9), std::memory_order_relaxed);
    use.runs.fetch_add(1, std::memory_order_relaxed);
    seconds = std::max(seconds, time.seconds);
    all_seconds += time.seconds;
  }
  // Freed before the answer is sent, and without the lock.
  InFlightTable::node_type in_flight;
  UnfinishedRuns::Entry unfinished;
  {
    absl::MutexLock lock(&mutex_);
    device_seconds_ += all_seconds;
    in_flight = in_flight_.extract(sequence);
    unfinished = unfinished_runs_.End(sequence);
    if (!status.ok() && !unfinished.is_cancelled) FailedLate(status);
  }
  in_flight = {};
  unfinished = {};
  Finish({.sequence = sequence, .error = status, .device_seconds = report_time ? seconds : 0});
}

bool Session::CancelRuns(uint64_t sequence, const Cancel& operation) {
  // Unless an earlier daemon has received it.
  if (cancelled_.empty() || cancelled_.back().cancel < sequence)
    cancelled_.push_back({operation.first, sequence});
  const absl::Status error = runtime::CancelledRun();
  memory::Charge charge = host_->Open(memory::Use::kHandles);
  charge.ForceResize(errors::BytesOf(error));
  const std::vector<uint64_t> runs = unfinished_runs_.Cancel(
      operation.first, buffers::Value::Failed(error, std::move(charge)), &handles_);
  if (protection_.journal)
    AppendToJournal({Encode(CancelledRecord{operation.first, sequence, runs})});
  return !runs.empty();
}

absl::Status Session::CheckNotCancelled(uint64_t sequence) const {
  for (const SessionImage::Cancelled& cancelled : cancelled_) {
    if (sequence >= cancelled.first && sequence < cancelled.cancel) return runtime::CancelledRun();
  }
  return absl::OkStatus();
}

void Session::Execute(uint64_t sequence, Cancel&) {
  {
    // The operations that it names have been executed, so the entry is not needed any more.
    absl::MutexLock lock(&mutex_);
    while (!cancelled_.empty() && cancelled_.front().cancel <= sequence) cancelled_.pop_front();
  }
  Finish({.sequence = sequence});
}

void Session::Execute(uint64_t sequence, ReleaseProgram& operation) {
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = programs_.Release(operation.program);
  }
  Finish({.sequence = sequence, .error = status});
}

}  // namespace kiln::sessions
