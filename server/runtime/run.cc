#include "server/runtime/run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/together.h"

namespace kiln::runtime {
namespace {

constexpr char kDependency[] = "an input failed: ";

absl::Status CountError(size_t want, size_t got) {
  return errors::WithReason(absl::InvalidArgumentError(absl::StrCat(
                                "the program has ", want, " inputs, but the run gives ", got)),
                            "WRONG_INPUT_COUNT");
}

// Checks the placement of an input. A failed value has none; the run fails with its error.
absl::Status CheckPlacement(const Signature& signature, size_t input, const buffers::Value& given) {
  const buffers::Placement* wanted =
      signature.input_placements.empty() ? nullptr : signature.input_placements[input].get();
  const buffers::Placement* has = given.placement().get();
  if (has == wanted || given.type() == nullptr) return absl::OkStatus();
  if (has != nullptr && wanted != nullptr && has->IsSameAs(*wanted, given.type()->shape.size()))
    return absl::OkStatus();
  const auto describe = [](const buffers::Placement* placement) {
    return placement ? placement->ToString() : std::string("on one device");
  };
  return errors::WithReason(
      absl::InvalidArgumentError(absl::StrCat("input ", input, " is ", describe(has),
                                              ", but the program needs it ", describe(wanted),
                                              "; copy it there (kiln.shard, Tensor.to)")),
      "INPUT_PLACEMENT", {{"input", absl::StrCat(input)}});
}

}  // namespace

void AddCommandSeconds(int first, absl::Span<const double> seconds, std::vector<double>* all) {
  if (seconds.empty()) return;  // it was not timed
  all->resize(std::max(all->size(), first + seconds.size()));
  for (size_t i = 0; i < seconds.size(); ++i) (*all)[first + i] += seconds[i];
}

absl::Status DependencyError(const absl::Status& cause) {
  // The prefix is added once, no matter how long the chain of dependencies is.
  if (absl::StartsWith(cause.message(), kDependency)) return cause;
  absl::Status status(cause.code(), absl::StrCat(kDependency, cause.message()));
  cause.ForEachPayload(
      [&](absl::string_view url, const absl::Cord& payload) { status.SetPayload(url, payload); });
  return status;
}

absl::Status CancelledRun() {
  return errors::WithReason(
      absl::CancelledError("the client cancelled the run; tensors that it would have updated keep "
                           "their values; run it again for its results"),
      "CANCELLED");
}

absl::Status CheckInputs(const Signature& signature, absl::Span<const ValuePointer> inputs) {
  if (inputs.size() != signature.inputs.size())
    return CountError(signature.inputs.size(), inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const TensorTypePointer& given = inputs[i]->type();
    const TensorTypePointer& wanted = signature.inputs[i];
    if (absl::Status status = CheckPlacement(signature, i, *inputs[i]); !status.ok()) return status;
    // Results have their program's type objects, so a step that is fed its own results compares
    // only pointers. A failed value may have no type; the run fails with its error.
    if (given == wanted || given == nullptr || *given == *wanted) continue;
    return errors::WithReason(
        absl::InvalidArgumentError(absl::StrCat("input ", i, " must be ", wanted->ToString(),
                                                ", but the buffer given is ", given->ToString())),
        "INPUT_MISMATCH", {{"input", absl::StrCat(i)}});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<Run>> Run::Create(std::string label,
                                                 std::shared_ptr<const BoundProgram> bound,
                                                 std::vector<ValuePointer> inputs,
                                                 std::shared_ptr<buffers::Account> account,
                                                 Done done) {
  ManagedDevice& device = bound->program->device();
  if (absl::Status status = device.CheckUsable(false); !status.ok()) return status;
  std::shared_ptr<Run> run(new Run(std::move(label), *bound->program));
  // After a loss, both are made again on their next use, at the expense of that user.
  auto renewed = Renewed(std::move(bound));
  if (!renewed.ok()) return device.AfterFailure(renewed.status());
  run->bound_ = *std::move(renewed);
  auto loaded = run->program().OnDevice();
  if (!loaded.ok()) return device.AfterFailure(loaded.status());
  run->loaded_ = *std::move(loaded);
  const Signature& signature = run->bound_->signature;
  // All memory except the arena is taken before the run is queued, so that a run without memory
  // fails at once. For the arena, one that is large enough is reserved.
  run->results_.reserve(signature.outputs.size() + signature.updates.size());
  for (const auto* types : {&signature.outputs, &signature.updates}) {
    for (const TensorTypePointer& type : *types) {
      const size_t result = run->results_.size();
      if (const size_t same = run->program().same_result(result); same != result) {
        run->results_.push_back(run->results_[same]);
        continue;
      }
      const int64_t bytes_min = run->bound_->result_bytes(result);
      auto value = device.pool()->Allocate(type, account, bytes_min);
      // The device may be lost without the daemon having noticed.
      if (!value.ok()) return device.AfterFailure(value.status());
      run->results_.push_back(std::move(*value));
    }
  }
  if (run->program().arena_bytes() > 0) {
    auto charge = account->AddArena(run->program().arena_bytes());
    if (!charge.ok()) return charge.status();
    run->arena_charge_ = *std::move(charge);
    auto arena = device.arenas().Reserve(run->program().arena_bytes());
    if (!arena.ok()) return device.AfterFailure(arena.status());
    run->arena_ = std::move(*arena);
  }
  run->inputs_ = std::move(inputs);
  if (absl::Status status = run->AllocateWider(account); !status.ok())
    return device.AfterFailure(status);
  run->user_ = account->user();
  run->done_ = std::move(done);
  run->first_run_.Begin("wait_for_device");
  return run;
}

absl::Status Run::AllocateWider(const std::shared_ptr<buffers::Account>& account) {
  for (size_t i = 0; i < bound_->widen.size(); ++i) {
    const drivers::Buffer* given = inputs_[i]->buffer();
    // Without a buffer the input has failed, and so will the run.
    if (bound_->widen[i] == nullptr || given == nullptr) continue;
    // Results of other runs often have the capacity already.
    if (given->bytes() >= bound_->input_bytes(i)) continue;
    auto value =
        program().device().pool()->Allocate(inputs_[i]->type(), account, bound_->input_bytes(i));
    if (!value.ok()) return value.status();
    wider_.resize(inputs_.size());
    wider_[i] = std::move(*value);
  }
  return absl::OkStatus();
}

absl::Status Run::Widen() {
  for (size_t i = 0; i < wider_.size(); ++i) {
    if (wider_[i] == nullptr) continue;
    // Submitted before the program, which sees the copied bytes because lists run in order. The
    // callback keeps both buffers until the copy has ended, even if this run has failed by then.
    drivers::Buffer* const pair[] = {inputs_[i]->buffer(), wider_[i]->buffer()};
    absl::Status status = program().device().device().Submit(
        *bound_->widen[i], pair, {},
        [bound = bound_, from = inputs_[i], to = wider_[i]](const drivers::SubmitResult&) {});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

bool Run::IsLost() const {
  if (loaded_->life != program().device().pool()->life()) return true;
  if (arena_ && arena_->lost()) return true;
  for (const auto* values : {&inputs_, &results_, &wider_}) {
    for (const ValuePointer& value : *values) {
      if (value != nullptr && value->lost()) return true;
    }
  }
  return bound_->variables && bound_->variables->lost();
}

absl::Status Run::InputFailure() const {
  for (const ValuePointer& input : inputs_) {
    if (absl::Status status = input->failure(); !status.ok()) return DependencyError(status);
  }
  const buffers::Value* variables = bound_->variables.get();
  if (variables != nullptr && variables->resolved()) return variables->status();
  return absl::OkStatus();
}

double Run::predicted_seconds() const {
  if (may_end_early_) return program().device().dispatcher().limits().slice_seconds;
  if (pieces_ == nullptr) return program().first_seconds(bound_->variables != nullptr);
  return pieces_->list[std::min(next_.load(), pieces_->list.size() - 1)].seconds;
}

bool Run::is_wanted() const {
  absl::MutexLock lock(&mutex_);
  return failure_.ok();
}

bool Run::Cancel() {
  const bool stops = program().device().device().stops_lists();
  absl::MutexLock lock(&mutex_);
  if (all_submitted_ && !stops) return false;
  return GiveUp(CancelledRun());
}

void Run::Stop(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  GiveUp(why);
}

bool Run::GiveUp(const absl::Status& why) {
  const bool has_ended = all_submitted_ && in_flight_ == 0;
  if (has_ended || !failure_.ok()) return false;
  SetFailure(why);
  *unwanted_ = true;
  return true;
}

void Run::SetFailure(const absl::Status& why) {
  if (why.ok() || !failure_.ok()) return;
  failure_ = why;
  for (const ValuePointer& value : results_) value->Doom(why);
}

absl::Status Run::CheckGoesOn() const {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  ManagedDevice& device = program().device();
  // Pending inputs are no obstacle: the runs that make them were submitted before, and lists run in
  // order.
  if (absl::Status status = InputFailure(); !status.ok()) return status;
  if (absl::Status status = device.CheckUsable(false); !status.ok()) return status;
  // For every piece: the device may have been lost and revived since the one before.
  if (IsLost()) return device.pool()->LostError();
  return absl::OkStatus();
}

absl::StatusOr<bool> Run::Begin() {
  auto pieces = program().CutIntoPieces(loaded_);
  if (!pieces.ok()) return program().device().AfterFailure(pieces.status());
  const bool may_end_early = program().MayEndEarly(/*varies=*/bound_->variables != nullptr);
  if (arena_ != nullptr) {
    const bool hold = *pieces != nullptr || may_end_early;
    auto arena = program().device().arenas().Take(program().arena_bytes(), hold);
    if (!arena.ok()) return program().device().AfterFailure(arena.status());
    if (*arena == nullptr) return false;
    arena_ = *std::move(arena);
    holds_arena_ = hold;
  }
  pieces_ = *std::move(pieces);
  may_end_early_ = may_end_early;
  return true;
}

Run::Slots Run::MakeSlots() const {
  Slots slots;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const bool is_wider = i < wider_.size() && wider_[i] != nullptr;
    slots.push_back((is_wider ? wider_ : inputs_)[i]->buffer());
  }
  if (bound_->variables) slots.push_back(bound_->variables->buffer());
  for (const ValuePointer& value : results_) slots.push_back(value->buffer());
  if (arena_) slots.push_back(arena_->buffer());
  return slots;
}

absl::StatusOr<fairness::Work::Handed> Run::Submit(int64_t ticket, absl::Duration waited) {
  if (absl::Status status = CheckGoesOn(); !status.ok()) return status;
  if (!begun_) {
    const auto has_room = Begin();
    if (!has_room.ok()) return has_room.status();
    if (!*has_room) return Handed::kNoRoom;
    begun_ = true;
    first_run_.Begin("run");
    program().device().metrics().RunStarted(waited);
    sampled_ = program().TakeSample();
    LogStarted(ticket);
    if (absl::Status status = Widen(); !status.ok()) return status;
  }
  if (may_end_early_) return SubmitRest(ticket);
  if (pieces_ == nullptr) {
    const absl::Status status = SubmitList(*loaded_->list, /*is_last=*/true, ticket);
    if (!status.ok()) return status;
    return Handed::kAll;
  }
  const size_t piece = next_++;
  // Read before the submission: after the last piece is submitted, this run may end at once.
  const bool is_last = piece + 1 == pieces_->list.size();
  // The next user of the arena is submitted after the last piece.
  if (is_last) ReleaseArena();
  const absl::Status status = SubmitList(*pieces_->list[piece].list, is_last, ticket);
  if (!status.ok()) return status;
  return is_last ? Handed::kAll : Handed::kSome;
}

absl::StatusOr<fairness::Work::Handed> Run::SubmitRest(int64_t ticket) {
  const absl::Status status = SubmitList(*loaded_->list, /*is_last=*/true, ticket);
  if (!status.ok()) return status;
  return Handed::kAlone;
}

absl::Status Run::SubmitList(drivers::PreparedList& list, bool is_last, int64_t ticket) {
  const Slots slots = MakeSlots();
  drivers::SubmitOptions options;
  {
    absl::MutexLock lock(&mutex_);
    // The run was cancelled after the last check.
    if (!failure_.ok()) return failure_;
    all_submitted_ = is_last;
    ++in_flight_;
    // Keeps this alive for the device. A captured shared_ptr would make the function allocate.
    self_ = shared_from_this();
    options.begin = begin_;
  }
  if (may_end_early_) {
    fairness::Dispatcher& dispatcher = program().device().dispatcher();
    options.slice_seconds = dispatcher.limits().slice_seconds;
    options.goes_on = [&dispatcher, ticket](double seconds) {
      return dispatcher.GoesOn(ticket, seconds);
    };
  }
  options.time_commands = sampled_;
  options.unwanted = unwanted_;
  absl::Status status = program().device().device().Submit(
      list, slots, options,
      [this, ticket](const drivers::SubmitResult& result) { Finished(ticket, result); });
  if (status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  // The caller, Fail, will end the run.
  all_submitted_ = false;
  SetFailure(status);
  if (--in_flight_ == 0) self_.reset();
  return status;
}

void Run::Finished(int64_t ticket, const drivers::SubmitResult& result) {
  ManagedDevice& device = program().device();
  const absl::Status status =
      result.status.ok() || *unwanted_ ? result.status : device.AfterFailure(result.status);
  bool is_end = false, has_rest = false;
  std::shared_ptr<Run> self;  // the device's callback holds only a raw pointer
  {
    absl::MutexLock lock(&mutex_);
    self = self_;
    AddTimes(result);
    SetFailure(status);
    if (--in_flight_ == 0) self_.reset();
    has_rest = result.rest.has_value() && failure_.ok();
    if (has_rest) {
      begin_ = *result.rest;
      all_submitted_ = false;
    }
    is_end = in_flight_ == 0 && all_submitted_;
  }
  // Before later work of its flow can start.
  if (has_rest && !device.dispatcher().Continue(ticket, self, predicted_seconds()))
    Fail(absl::CancelledError("the session was closed"));
  if (is_end) End();
  // Last, so that a thread that waits for an idle device finds the results resolved and answered. A
  // run that has failed and has more pieces waits there for its turn, and fails then.
  device.dispatcher().Finished(ticket, result.seconds);
}

void Run::AddTimes(const drivers::SubmitResult& result) {
  seconds_ += result.seconds;
  // Lists end in the order of their submission.
  const int first = pieces_ ? pieces_->list[pieces_ended_++].first_command : begin_.command;
  AddCommandSeconds(first, result.command_seconds, &command_seconds_);
}

void Run::ReleaseArena() {
  if (!holds_arena_) return;
  program().device().arenas().Release(*arena_);
  holds_arena_ = false;
}

void Run::End() {
  ReleaseArena();
  ManagedDevice& device = program().device();
  absl::Status status;
  double seconds = 0;
  {
    absl::MutexLock lock(&mutex_);
    status = failure_;
    seconds = seconds_;
  }
  // The run of an input may have failed on the device after this run was submitted.
  if (status.ok()) status = InputFailure();
  if (status.ok()) {
    RecordTimes();
  } else {
    device.metrics().RunFailed();
  }
  LogEnded(status);
  Resolve(status, seconds);
}

void Run::RecordTimes() {
  ManagedDevice& device = program().device();
  absl::MutexLock lock(&mutex_);
  const bool is_warm_sample = program().Record(user_, seconds_, command_seconds_);
  const std::string digest = program().short_digest();
  const metrics::RunLabels labels{user_, digest};
  device.metrics().RunFinished(labels, seconds_, program().kernel_shares());
  if (!is_warm_sample) return;
  const auto& compiled = program().compiled();
  for (size_t i = 0; i < command_seconds_.size() && i < compiled.calls.size(); ++i) {
    device.metrics().KernelRan(labels, compiled.kernels[compiled.calls[i].kernel].image.name,
                               command_seconds_[i]);
  }
}

void Run::LogStarted(int64_t ticket) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug("run_started", {{"run", label_},
                             {"program", program().short_digest()},
                             {"device", program().device().name()},
                             {"ticket", absl::StrCat(ticket)},
                             {"timed_by_kernel", sampled_ ? "yes" : "no"}});
}

void Run::LogEnded(const absl::Status& status) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  absl::MutexLock lock(&mutex_);
  const compiler::CompiledProgram& compiled = program().compiled();
  for (size_t i = 0; i < command_seconds_.size() && i < compiled.calls.size(); ++i) {
    const compiler::CompiledKernel& kernel = compiled.kernels[compiled.calls[i].kernel];
    log::Debug("kernel_timed", {{"run", label_},
                                {"program", program().short_digest()},
                                {"kernel", kernel.image.name},
                                {"digest", ShortDigest(kernel.digest)},
                                {"seconds", absl::StrCat(command_seconds_[i])}});
  }
  log::Debug("run_ended", {{"run", label_},
                           {"program", program().short_digest()},
                           {"device", program().device().name()},
                           {"pieces", absl::StrCat(pieces_ ? pieces_->list.size() : 1)},
                           {"seconds", absl::StrCat(seconds_)},
                           {"status", status.ok() ? "OK" : status.ToString()}});
}

void Run::Fail(const absl::Status& status) {
  log::Debug(
      "run_failed",
      {{"run", label_}, {"program", program().short_digest()}, {"status", status.ToString()}});
  // While it still belongs to this thread.
  ReleaseArena();
  {
    absl::MutexLock lock(&mutex_);
    SetFailure(status);
    all_submitted_ = true;
    // If cancelled, the piece on the device is stopped, too. After other errors Finished reports
    // its end.
    if (absl::IsCancelled(status)) *unwanted_ = true;
    // The list on the device uses the buffers; Finished continues after its end.
    if (in_flight_ > 0) return;
  }
  End();
}

void Run::Resolve(const absl::Status& status, double seconds) {
  first_run_.Begin("answer");
  const Together together;  // the messages about the results and the run's end go out together
  for (const ValuePointer& value : results_) value->Resolve(status);
  // Frees the memory that only this run still used before its answer is sent.
  inputs_.clear();
  wider_.clear();
  results_.clear();
  arena_.reset();
  arena_charge_.reset();
  // Destroys its captures before the device counts as idle; after that, this may outlive the
  // device.
  const Done done = std::exchange(done_, nullptr);
  done(status, seconds);
  first_run_.End(label_, program(), status);
}

}  // namespace kiln::runtime
