#include "server/sessions/operations/run.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/sessions/operations/make_run.h"
#include "server/sessions/session_state.h"

namespace kiln::sessions {
namespace {

void EncodeBindings(Encoder& out, const runtime::Bindings& bindings) {
  out.Number(bindings.size());
  for (const auto& [name, value] : bindings) {
    out.Text(name);
    out.Signed(value);
  }
}

runtime::Bindings DecodeBindings(Decoder& in) {
  runtime::Bindings bindings;
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    std::string name(in.Text());
    bindings[std::move(name)] = in.Signed();
  }
  return bindings;
}

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

// Returns the error of the first input that has failed.
absl::Status FailedInput(absl::Span<const runtime::ValuePointer> inputs) {
  for (const runtime::ValuePointer& input : inputs)
    if (input->resolved() && !input->status().ok())
      return runtime::DependencyError(input->status());
  return absl::OkStatus();
}

// Finds the inputs. Returns the first error of the handles or of the values.
absl::StatusOr<std::vector<runtime::ValuePointer>> FindInputs(const HandleTable& handles,
                                                              const RunProgram& operation) {
  std::vector<runtime::ValuePointer> inputs;
  inputs.reserve(operation.inputs.size());
  for (const uint64_t handle : operation.inputs) {
    auto value = handles.Find(handle);
    if (!value.ok()) return value.status();
    if (absl::Status failed = FailedInput({&*value, 1}); !failed.ok()) return failed;
    inputs.push_back(std::move(*value));
  }
  return inputs;
}

// Looks up what the run needs, and checks it. On success, handles are reserved for the outputs, and
// `run` has what is needed to do it again.
absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> Prepare(SessionState& session,
                                                                     uint64_t sequence,
                                                                     const RunProgram& operation,
                                                                     PendingRun* run) {
  session.mutex.AssertHeld();
  if (absl::Status status = session.CheckNotCancelled(sequence); !status.ok()) return status;
  auto program = session.programs.Find(sequence, operation);
  if (!program.ok()) return program.status();
  auto inputs = FindInputs(session.handles, operation);
  if (!inputs.ok()) return inputs.status();
  absl::Status status = CheckInputs(**program, *inputs);
  if (status.ok()) status = CheckResults(operation, (*program)->signature);
  if (status.ok()) status = session.handles.Reserve(operation.outputs);
  if (!status.ok()) return status;
  run->program = session.programs.OriginOf(operation.program);
  run->bindings = operation.bindings;
  run->inputs = *std::move(inputs);
  run->report_time = operation.report_time;
  return program;
}

// Returns how many references there are to an input of the run that nothing else uses: that of its
// handle, and the run's own. 0: the run must not write over it, because a checkpoint that is taken
// while the session goes on contains the values from before its pending runs.
int ReferencesToInputs(const SessionState& session) {
  constexpr int kHandles = 1;
  constexpr int kInputs = 1;
  return session.recorder == nullptr ? kHandles + kInputs : 0;
}

// Binds the results of a run that is about to be queued.
void BindResults(HandleTable& handles, RunProgram& operation, const runtime::Signature& signature,
                 PendingRun* run) {
  const absl::Span<const runtime::ValuePointer> results = run->results;
  KILN_CHECK_EQ(results.size(), operation.outputs.size() + signature.updated_inputs.size());
  size_t next = operation.outputs.size();
  handles.Bind(operation.outputs, results.first(next));
  run->updates.reserve(signature.updated_inputs.size());
  for (const int input : signature.updated_inputs) {
    const uint64_t handle = operation.inputs[input];
    run->updates.push_back({handle, handles.Rebind(handle, results[next++])});
  }
  run->outputs = std::move(operation.outputs);
}

void CountRun(User& user, absl::Span<const runtime::Run::DeviceTime> times) {
  for (const runtime::Run::DeviceTime& time : times) {
    KILN_CHECK(time.device != nullptr && user.devices.contains(time.device->name()));
    DeviceUse& use = user.devices.at(time.device->name());
    use.nanoseconds.fetch_add(static_cast<int64_t>(time.seconds * 1e9), std::memory_order_relaxed);
    use.runs.fetch_add(1, std::memory_order_relaxed);
    use.wait_nanoseconds.fetch_add(absl::ToInt64Nanoseconds(time.waited),
                                   std::memory_order_relaxed);
  }
}

// Answers a run once it has ended.
runtime::Run::Done WhenEnded(SessionState& session, uint64_t sequence, bool report_time) {
  return [self = session.shared_from_this(), sequence, report_time](
             const absl::Status& status, absl::Span<const runtime::Run::DeviceTime> times) {
    CountRun(*self->user, times);
    double longest = 0;
    double sum = 0;
    for (const runtime::Run::DeviceTime& time : times) {
      longest = std::max(longest, time.seconds);
      sum += time.seconds;
    }
    // Freed before the answer is sent, and without the lock.
    std::optional<PendingOperation> ended;
    {
      absl::MutexLock lock(&self->mutex);
      self->device_seconds += sum;
      ended = self->pending.TakeExecuted(sequence);
      const auto* run = ended ? std::get_if<PendingRun>(&*ended) : nullptr;
      if (!status.ok() && (run == nullptr || !run->is_cancelled)) self->FailedLate(status);
    }
    ended.reset();
    self->Finish(
        {.sequence = sequence, .error = status, .device_seconds = report_time ? longest : 0});
  };
}

absl::Status RestorationEnded() { return absl::CancelledError("the session was closed"); }

// Makes a run of a checkpoint again, with values that replace its results.
absl::StatusOr<QueueableRun> MakeAgain(SessionState& session, uint64_t sequence, size_t pending,
                                       const SavedRun& saved) {
  PendingRun again{nullptr, saved.bindings, {}, saved.report_time};
  std::shared_ptr<runtime::ProgramFuture> future;
  {
    absl::MutexLock lock(&session.mutex);
    if (!session.restoration) return RestorationEnded();
    const Restoration& restoration = *session.restoration;
    KILN_CHECK_LT(pending, restoration.programs.size());
    future = restoration.programs[pending];
    again.program = restoration.origins[saved.origin];
    for (const size_t input : saved.inputs) again.inputs.push_back(restoration.values[input]);
  }
  // MustWaitFor of RedoPending has waited for it.
  KILN_CHECK(future != nullptr && future->resolved()) << "run " << sequence;
  if (!future->result().ok()) return future->result().status();
  const std::shared_ptr<const runtime::BoundProgram>& program = *future->result();
  absl::Status status = FailedInput(again.inputs);
  if (status.ok()) status = CheckInputs(*program, again.inputs);
  const runtime::Signature& signature = program->signature;
  if (status.ok() && signature.outputs.size() + signature.updates.size() != saved.results.size())
    status = absl::InternalError("a run in the checkpoint does not match its program");
  if (!status.ok()) return status;
  auto made = MakeRun(session, sequence, program, again.inputs,
                      WhenEnded(session, sequence, saved.report_time));
  if (!made.ok()) return made.status();
  again.results = made->run->results();
  absl::MutexLock lock(&session.mutex);
  if (!session.restoration) return RestorationEnded();
  KILN_CHECK_EQ(again.results.size(), saved.results.size()) << "run " << sequence;
  for (size_t i = 0; i < saved.results.size(); ++i)
    session.restoration->values[saved.results[i]] = again.results[i];
  session.pending.SetExecuted(sequence, std::move(again));
  return made;
}

// Fails the results of a run that cannot be done again. It has not begun, so it changes no state:
// the inputs that it would have updated keep their values.
void FailResults(Restoration& restoration, size_t pending, const SavedRun& saved,
                 const runtime::ValuePointer& failed) {
  const auto& program = restoration.programs[pending]->result();
  const size_t updates = program.ok() ? (*program)->signature.updated_inputs.size() : 0;
  const size_t outputs = saved.results.size() - std::min(updates, saved.results.size());
  for (size_t i = 0; i < saved.results.size(); ++i) {
    restoration.values[saved.results[i]] =
        i < outputs ? failed
                    : restoration.values[saved.inputs[static_cast<size_t>(
                          (*program)->signature.updated_inputs[i - outputs])]];
  }
}

}  // namespace

// A run holds two pointers for each tensor, and so does its entry in the table of pending
// operations.
int64_t RunProgram::bytes() const {
  int64_t bytes = 5 * (HeldBy(inputs) + HeldBy(outputs));
  for (const auto& [name, value] : bindings) bytes += 128 + HeldBy(name);
  return bytes;
}

void RunProgram::EncodeForLog(Encoder& out) const {
  out.Number(kLogKinds[0]);
  out.Number(program);
  out.Numbers(inputs);
  out.Numbers(outputs);
  EncodeBindings(out, bindings);
  out.Number(report_time ? 1 : 0);
}

RunProgram RunProgram::DecodeFromLog(uint64_t, Decoder& in) {
  RunProgram run;
  run.program = in.Number();
  run.inputs = in.Numbers();
  run.outputs = in.Numbers();
  run.bindings = DecodeBindings(in);
  run.report_time = in.Below(2) != 0;
  return run;
}

AddWaiter RunProgram::MustWaitFor(SessionState& session, uint64_t sequence) const {
  absl::MutexLock lock(&session.mutex);
  if (!session.CheckNotCancelled(sequence).ok()) return nullptr;
  if (auto future = session.programs.MustWaitFor(sequence, *this)) {
    return [future = std::move(future), &session](std::function<void()> resume) {
      return future->AddWaiter(session.CountCompileWait(std::move(resume)));
    };
  }
  // On the device, the run would block all other runs until the copy has ended.
  for (size_t i = 0; !session.being_copied.empty() && i < inputs.size(); ++i) {
    const auto value = session.handles.Find(inputs[i]);
    if (!value.ok() || !session.being_copied.contains(*value) || (*value)->resolved()) continue;
    return [value = *value, copies = session.services.copies](std::function<void()> resume) {
      // The waiter is called on the device's thread, which has other copies to do.
      return value->AddWaiter(
          [copies, resume = std::move(resume)](const absl::Status&) { copies->Schedule(resume); });
    };
  }
  return nullptr;
}

void RunProgram::Execute(SessionState& session, uint64_t sequence) {
  PendingRun pending;
  absl::StatusOr<std::shared_ptr<const runtime::BoundProgram>> bound;
  {
    absl::MutexLock lock(&session.mutex);
    ++session.runs;
    bound = Prepare(session, sequence, *this, &pending);
  }
  if (!bound.ok()) return session.Refuse(sequence, outputs, bound.status());
  const std::string encoded = session.Encoded(*this);
  auto made = MakeRun(session, sequence, *bound, pending.inputs,
                      WhenEnded(session, sequence, report_time), ReferencesToInputs(session));
  if (!made.ok()) return session.Refuse(sequence, outputs, made.status());
  pending.run = made->run;
  pending.results = made->run->results();
  absl::Status cancelled;
  {
    absl::MutexLock lock(&session.mutex);
    cancelled = session.CheckNotCancelled(sequence);
    if (!session.closed && cancelled.ok()) {
      // In the same critical section as the check, so that Cancel sees either both or neither.
      session.LogExecuted(sequence, encoded);
      BindResults(session.handles, *this, (*bound)->signature, &pending);
      session.pending.SetExecuted(sequence, std::move(pending));
      KILN_VALIDATE(session, session.entries());
    }
  }
  if (!cancelled.ok()) return session.Refuse(sequence, outputs, cancelled);
  made->enqueue();
}

absl::StatusOr<SavedRun> PendingRun::Save(CheckpointIndex& index) const {
  const auto origin = index.Of(program);
  if (!origin.ok()) return origin.status();
  auto saved_inputs = index.Of(inputs);
  if (!saved_inputs.ok()) return saved_inputs.status();
  auto saved_results = index.Of(results);
  if (!saved_results.ok()) return saved_results.status();
  SavedRun saved{*origin, bindings, *std::move(saved_inputs), *std::move(saved_results),
                 report_time};
  for (const Update& update : updates) {
    const auto before = index.Of(update.before);
    if (!before.ok()) return before.status();
    saved.updates.push_back({update.handle, *before});
  }
  return saved;
}

void SavedRun::Encode(Encoder& out) const {
  out.Number(origin);
  EncodeBindings(out, bindings);
  out.Numbers(inputs);
  out.Numbers(results);
  out.Number(report_time ? 1 : 0);
}

SavedRun SavedRun::Decode(Decoder& in, const CheckpointSizes& sizes) {
  SavedRun run;
  run.origin = in.Below(sizes.origins);
  run.bindings = DecodeBindings(in);
  run.inputs = in.AllBelow(sizes.values);
  run.results = in.AllBelow(sizes.values);
  run.report_time = in.Number() != 0;
  return run;
}

void SavedRun::EncodeMore(Encoder& out) const {
  out.Number(updates.size());
  for (const Update& update : updates) {
    out.Number(update.handle);
    out.Number(update.before);
  }
}

void SavedRun::DecodeMore(Decoder& in, const CheckpointSizes& sizes) {
  for (size_t count = in.Count(); count > 0 && in.ok(); --count) {
    const uint64_t handle = in.Number();
    updates.push_back({handle, in.Below(sizes.values)});
  }
  if (updates.size() > results.size()) in.Fail();
}

std::vector<size_t> SavedRun::uses() const {
  std::vector<size_t> all = inputs;
  for (const Update& update : updates) all.push_back(update.before);
  return all;
}

void SavedRun::Redo(SessionState& session, uint64_t sequence, size_t pending) const {
  auto made = MakeAgain(session, sequence, pending, *this);
  if (made.ok()) return made->enqueue();
  const absl::Status error = errors::WithBoundedMessage(made.status());
  const auto failed = session.MakeFailed(error);
  {
    absl::MutexLock lock(&session.mutex);
    if (session.restoration) FailResults(*session.restoration, pending, *this, failed);
    session.FailedLate(error);
  }
  session.Finish({.sequence = sequence, .error = error});
}

}  // namespace kiln::sessions
