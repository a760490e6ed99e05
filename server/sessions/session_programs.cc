// How operations on programs are executed: define, run, release.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/sessions/session.h"

namespace kiln::sessions {
namespace {

// The number of outputs, and that no handle is updated twice. The inputs have been checked.
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
          absl::StrCat("handle ", *twice, " is bound to two inputs that the program updates")),
      "UPDATED_TWICE", {{"handle", absl::StrCat(*twice)}});
}

void ForgetLeastRecent(DefinedProgram* program) {
  program->instances.erase(
      std::min_element(program->instances.begin(), program->instances.end(),
                       [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
}

}  // namespace

std::shared_ptr<runtime::ProgramFuture> Session::Instance(uint64_t sequence,
                                                          const RunProgram& run) {
  const auto found = programs_.find(run.program);
  if (found == programs_.end() || !found->second.source.ok()) return nullptr;
  DefinedProgram& program = found->second;
  const auto known = program.instances.find(run.bindings);
  if (known != program.instances.end()) {
    DefinedProgram::Instance& instance = known->second;
    instance.used = sequence;
    const bool failed = instance.future->resolved() && !instance.future->result().ok();
    // Without variables the definition has failed, and the client knows.
    if (!failed || program.variables.empty() || instance.compiled_for == sequence)
      return instance.future;
  } else {
    if (!runtime::CheckBindings(program.variables, run.bindings).ok()) return nullptr;
    if (program.instances.size() >= services_.limits.bindings_per_program ||
        !ReserveProgram(&program, program.instances.size() + 1).ok()) {
      // There is one: the definition has reserved the first.
      ForgetLeastRecent(&program);
    }
  }
  auto future =
      services_.programs->Get(*program.source, run.bindings, device_, program.name, host_);
  program.instances[run.bindings] = {future, sequence, sequence};
  return future;
}

std::shared_ptr<runtime::ProgramFuture> Session::MustWaitFor(const Queued& queued) {
  const auto* run = std::get_if<RunProgram>(&queued.operation);
  if (run == nullptr) return nullptr;
  auto future = Instance(queued.sequence, *run);
  return future && !future->resolved() ? future : nullptr;
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
  DefinedProgram program;
  program.source = operation.graph;
  program.name = runtime::ShortName(operation.name);
  if (program.source.ok()) program.variables = (*program.source)->variables();
  program.charge = host_->Open(memory::Use::kPrograms);
  absl::Status status = ReserveProgram(&program, 1);
  if (!status.ok()) return status;
  status = program.source.status();
  if (status.ok()) status = device_.CheckUsable(true);
  if (!status.ok()) {
    program.source = status;
  } else if (program.variables.empty()) {
    *future = services_.programs->Get(*program.source, {}, device_, program.name, host_);
    program.instances[{}].future = *future;
    program.source = nullptr;
  }
  programs_.emplace(operation.program, std::move(program));
  return status;
}

void Session::Execute(uint64_t sequence, DefineProgram& operation) {
  std::shared_ptr<runtime::ProgramFuture> future;
  absl::Status status;
  {
    absl::MutexLock lock(&mutex_);
    status = Define(operation, &future);
  }
  if (!status.ok()) return Fail(sequence, {}, status);
  if (log::IsOn(log::Level::kDebug)) {
    log::Debug("program_defined", {{"session", identity_.name},
                                   {"operation", absl::StrCat(identity_.name, "/", sequence)},
                                   {"id", absl::StrCat(operation.program)},
                                   {"name", runtime::ShortName(operation.name)},
                                   {"source", runtime::ShortDigest((*operation.graph)->key())}});
  }
  const auto self = shared_from_this();
  if (!future) {
    services_.programs->Check(
        *operation.graph, host_,
        [self, sequence, key = (*operation.graph)->key()](absl::Status checked) {
          self->Finish({.sequence = sequence, .error = checked, .digest = checked.ok() ? key : ""});
        });
    return;
  }
  const auto compiled = [self, sequence, future] {
    const auto& result = future->result();
    self->Finish({.sequence = sequence,
                  .error = result.status(),
                  .digest = result.ok() ? (*result)->program->description().digest : ""});
  };
  if (!future->AddWaiter(compiled)) compiled();
}

absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> Session::FindProgram(
    uint64_t sequence, const RunProgram& operation) {
  const auto defined = programs_.find(operation.program);
  if (defined == programs_.end()) {
    const bool released = used_programs_.Contains(operation.program);
    return errors::WithReason(absl::NotFoundError(absl::StrCat(
                                  "program ", operation.program,
                                  released ? " has been released" : " is unknown in this session")),
                              "UNKNOWN_PROGRAM", {{"program", absl::StrCat(operation.program)}});
  }
  const DefinedProgram& program = defined->second;
  if (!program.source.ok()) return program.source.status();
  absl::Status bound = runtime::CheckBindings(program.variables, operation.bindings);
  if (!bound.ok()) return bound;
  return Instance(sequence, operation)->result();
}

absl::StatusOr<Session::Plan> Session::PlanRun(uint64_t sequence, const RunProgram& operation) {
  auto program = FindProgram(sequence, operation);
  if (!program.ok()) return program.status();
  Plan plan{std::move(*program), {}};
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
  if (status.ok()) status = CheckResults(operation, signature);
  if (status.ok()) status = handles_.CheckNew(operation.outputs);
  if (status.ok()) status = ReserveHandles(operation.outputs.size());
  if (!status.ok()) return status;
  return plan;
}

void Session::BindResults(const RunProgram& operation, const runtime::Signature& signature,
                          const std::vector<runtime::ValuePointer>& results) {
  size_t next = 0;
  for (const uint64_t handle : operation.outputs) handles_.Bind(handle, results[next++]);
  for (const int input : signature.updated_inputs)
    handles_.Rebind(operation.inputs[input], results[next++]);
  SettleHandles();
}

void Session::Execute(uint64_t sequence, RunProgram& operation) {
  absl::StatusOr<Plan> plan;
  {
    absl::MutexLock lock(&mutex_);
    ++runs_;
    plan = PlanRun(sequence, operation);
  }
  if (!plan.ok()) return Fail(sequence, operation.outputs, plan.status());
  auto run = runtime::Run::Create(
      absl::StrCat(identity_.name, "/", sequence), plan->program, std::move(plan->inputs), account_,
      [self = shared_from_this(), sequence, report_time = operation.report_time](
          const absl::Status& status, double seconds) {
        self->RunEnded(sequence, report_time, status, seconds);
      });
  if (!run.ok()) return Fail(sequence, operation.outputs, run.status());
  {
    absl::MutexLock lock(&mutex_);
    if (!closed_) BindResults(operation, plan->program->signature, (*run)->results());
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

}  // namespace kiln::sessions
