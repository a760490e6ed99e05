// Run: the end of its lists and of the run, failure and cancellation.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/errors/errors.h"
#include "server/log/log.h"
#include "server/runtime/run/run.h"
#include "server/runtime/run/together.h"

namespace kiln::runtime {
namespace {

// Adds the command times of a list that began with command `first` of the whole list. Another list
// may have run a part of that command.
void AddCommandSeconds(int first, absl::Span<const double> seconds, std::vector<double>* all) {
  if (seconds.empty()) return;  // it was not timed
  all->resize(std::max(all->size(), first + seconds.size()));
  for (size_t i = 0; i < seconds.size(); ++i) (*all)[first + i] += seconds[i];
}

}  // namespace

absl::Status CancelledRun() {
  return errors::WithReason(
      absl::CancelledError("the client cancelled the run; tensors that it would have updated keep "
                           "their values; run it again for its results"),
      "CANCELLED");
}

void Run::Finished(int member, int64_t ticket, const drivers::SubmitResult& result) {
  if (trace::IsOn(device(member).trace_recorder())) TraceList(member, result);
  absl::Status status = result.status, lost;
  if (!status.ok() && !*unwanted_) lost = WhyLost(member);
  // Other members end because of the lost device; its own error says more than theirs.
  if (!lost.ok()) status = lost;
  bool is_end = false, has_rest = false;
  ManagedDevice& on = device(member);
  std::vector<ManagedDevice*> held;
  std::shared_ptr<Run> self;  // the device's callback holds only a raw pointer
  {
    absl::MutexLock lock(&mutex_);
    KILN_CHECK_GT(in_flight_, 0) << label_ << ": a list ended twice";
    AddTimes(member, result);
    if (failure_.ok() || (!lost.ok() && !*unwanted_)) SetFailure(status);
    if (--in_flight_ == 0) self.swap(self_);
    has_rest = result.rest.has_value() && failure_.ok();
    if (has_rest) {
      begin_ = *result.rest;
      all_submitted_ = false;
    }
    is_end = in_flight_ == 0 && all_submitted_;
    if (is_end) held = HeldDevices();
    KILN_VALIDATE(*this, 1);
  }
  // Only the one list of a run on one device may end early, so it was the last in flight.
  KILN_CHECK(!has_rest || self != nullptr) << label_;
  // Before later work of its flow can start.
  if (has_rest && !on.dispatcher().Continue(ticket, self, predicted_seconds()))
    Fail(absl::CancelledError("the session was closed"));
  if (is_end) End();
  // The dispatcher is last, so that a thread that waits for an idle device finds the results
  // resolved and answered. This object, and once nothing runs the devices, may be destroyed. A run
  // that has failed and has more pieces waits for its turn somewhere, and fails then.
  self.reset();
  on.dispatcher().Finished(ticket, result.seconds);
  for (ManagedDevice* each : held) each->Release();
}

void Run::AddTimes(int member, const drivers::SubmitResult& result) {
  KILN_CHECK_LT(member, ended_.size()) << label_;
  Ended& ended = ended_[member];
  KILN_CHECK_LT(ended.pieces, pieces()) << label_;
  ended.seconds += result.seconds;
  AddCommandSeconds(FirstCommand(member), result.command_seconds, &ended.command_seconds);
  if (pieces_) ++ended.pieces;
}

int Run::FirstCommand(int member) const {
  // A device's lists end in the order of their submission.
  return pieces_ ? pieces_->lists[member][ended_[member].pieces].first_command : begin_.command;
}

absl::Status Run::WhyLost(int member) const {
  for (int i = 0; i < size(); ++i) {
    ManagedDevice& asked = device((member + i) % size());  // the member's device first
    asked.CheckHealth();
    if (absl::Status lost = asked.CheckUsable(false); !lost.ok()) return lost;
  }
  return absl::OkStatus();
}

void Run::SetFailure(const absl::Status& why) {
  if (why.ok()) return;
  failure_ = why;
  for (const ValuePointer& value : results_) value->Doom(why);
}

bool Run::Cancel() {
  const auto& members = sharded().members();
  const bool all_stop = std::all_of(
      members.begin(), members.end(),
      [](const ShardedProgram::Member& member) { return member.device->device().stops_lists(); });
  return GiveUp(CancelledRun(), all_stop ? Until::kCommitted : Until::kSubmitted);
}

void Run::Stop(const absl::Status& why) { GiveUp(why, Until::kEnded); }

bool Run::GiveUp(const absl::Status& why, Until until) {
  std::shared_ptr<drivers::SignalGroup> signals;
  {
    absl::MutexLock lock(&mutex_);
    const bool is_too_late = all_submitted_ && (in_flight_ == 0 || until == Until::kSubmitted);
    if (is_too_late || !failure_.ok()) return false;
    if (has_committed_ && until != Until::kEnded) return false;
    SetFailure(why);
    *unwanted_ = true;
    signals = signals_;
  }
  // Releases lists that wait for one another, without waiting for the devices.
  if (signals) signals->Abort(why);
  return true;
}

absl::Status Run::BeginCommit() {
  // Runs before this one have ended on the device, so that their failures are known.
  if (absl::Status status = InputFailure(); !status.ok()) return status;
  absl::MutexLock lock(&mutex_);
  if (!failure_.ok()) return failure_;
  if (keeps_inputs_) return absl::CancelledError("the inputs of the run are kept");
  has_committed_ = true;
  return absl::OkStatus();
}

bool Run::has_committed() const {
  absl::MutexLock lock(&mutex_);
  return has_committed_;
}

bool Run::KeepInputs() {
  absl::MutexLock lock(&mutex_);
  keeps_inputs_ = !has_committed_;
  return keeps_inputs_;
}

void Run::Fail(const absl::Status& why) {
  log::Debug("run_failed",
             {{"run", label_}, {"program", program().short_digest()}, {"status", why.ToString()}});
  std::vector<std::pair<ManagedDevice*, int64_t>> parked;
  bool is_end = false;
  {
    absl::MutexLockMaybe order(order_mutex());
    // While it still belongs to this thread.
    memory_.Release(program());
    absl::MutexLock lock(&mutex_);
    if (all_submitted_) return;
    if (failure_.ok()) SetFailure(why);
    all_submitted_ = true;
    // Members that wait in other queues fail when their turn comes. The lists on the devices are
    // stopped if cancelled; after other errors Finished reports their end.
    if (!begun_ || absl::IsCancelled(why)) *unwanted_ = true;
    for (size_t i = 0; i < parked_.size(); ++i) {
      const int64_t ticket = std::exchange(parked_[i], 0);
      if (ticket != 0) parked.emplace_back(&device(static_cast<int>(i)), ticket);
    }
    // The lists on the devices use the buffers; Finished continues after their end.
    is_end = in_flight_ == 0;
  }
  const std::shared_ptr<Run> self = shared_from_this();
  if (is_end) End();
  for (const auto& [on, ticket] : parked) on->dispatcher().Finished(ticket, 0);
  if (is_end && begun_) ReleaseDevices();
}

std::vector<ManagedDevice*> Run::HeldDevices() const {
  std::vector<ManagedDevice*> devices;
  if (!sharded().is_joint()) return devices;
  for (const ShardedProgram::Member& member : sharded().members()) devices.push_back(member.device);
  return devices;
}

void Run::HoldDevices() const {
  for (ManagedDevice* device : HeldDevices()) device->Hold();
}

void Run::ReleaseDevices() const {
  for (ManagedDevice* device : HeldDevices()) device->Release();
}

void Run::Validate() const {
  KILN_CHECK_EQ(ended_.size(), size()) << label_;
  KILN_CHECK_GE(in_flight_, 0) << label_;
  // The devices have a raw pointer to it.
  KILN_CHECK_EQ(self_ != nullptr, in_flight_ > 0) << label_;
}

void Run::End() {
  // A run in pieces has released it with the last one.
  if (may_end_early_) memory_.Release(program());
  absl::Status status;
  absl::InlinedVector<DeviceTime, 1> times;
  {
    absl::MutexLock lock(&mutex_);
    status = failure_;
    for (int i = 0; i < size(); ++i) times.push_back({&device(i), ended_[i].seconds, waited_});
  }
  // The run of an input may have failed on the devices after this run was submitted.
  if (status.ok()) status = InputFailure();
  if (status.ok()) {
    RecordTimes();
  } else {
    for (const DeviceTime& time : times) time.device->metrics().RunFailed();
  }
  LogEnded(status);
  Resolve(status, times);
}

void Run::RecordTimes() {
  absl::MutexLock lock(&mutex_);
  absl::InlinedVector<double, 1> seconds;
  for (const Ended& ended : ended_) seconds.push_back(ended.seconds);
  const std::vector<std::vector<double>> calls = CallSeconds();
  const bool is_warm_sample = program().Record(user_, seconds, calls);
  const std::string digest = program().short_digest();
  const metrics::RunLabels labels{user_, digest};
  for (int i = 0; i < size(); ++i) {
    metrics::DeviceMetrics& metrics = device(i).metrics();
    metrics.RunFinished(labels, seconds[i], program().kernel_shares(i));
    if (!is_warm_sample) continue;
    const compiler::CompiledProgram& compiled = sharded().compiled(i);
    for (size_t call = 0; call < calls[i].size(); ++call)
      metrics.KernelRan(labels, compiled.kernels[compiled.calls[call].kernel].image.name,
                        calls[i][call]);
  }
}

std::vector<std::vector<double>> Run::CallSeconds() const {
  std::vector<std::vector<double>> calls;
  for (int i = 0; i < size(); ++i) {
    const std::vector<double>& seconds = ended_[i].command_seconds;
    if (seconds.empty()) return {};
    calls.emplace_back();
    // Signals and copies are between the kernels. A run that has failed has fewer times.
    for (const int command : loaded_->members[i].command_of_call)
      if (static_cast<size_t>(command) < seconds.size()) calls[i].push_back(seconds[command]);
  }
  return calls;
}

void Run::LogEnded(const absl::Status& status) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  absl::MutexLock lock(&mutex_);
  const std::vector<std::vector<double>> calls = CallSeconds();
  for (size_t i = 0; i < calls.size(); ++i) {
    const int member = static_cast<int>(i);
    const compiler::CompiledProgram& compiled = sharded().compiled(member);
    for (size_t call = 0; call < calls[i].size(); ++call) {
      const compiler::CompiledKernel& kernel = compiled.kernels[compiled.calls[call].kernel];
      log::Debug("kernel_timed", {{"run", label_},
                                  {"program", program().short_digest()},
                                  {"device", device(member).name()},
                                  {"kernel", kernel.image.name},
                                  {"digest", ShortDigest(kernel.digest)},
                                  {"seconds", absl::StrCat(calls[i][call])}});
    }
  }
  log::Debug("run_ended", {{"run", label_},
                           {"program", program().short_digest()},
                           {"device", device(0).name()},
                           {"devices", absl::StrCat(size())},
                           {"pieces", absl::StrCat(pieces())},
                           {"seconds", absl::StrCat(ended_[0].seconds)},
                           {"status", status.ok() ? "OK" : status.ToString()}});
}

void Run::Resolve(const absl::Status& status, absl::Span<const DeviceTime> times) {
  first_run_.Begin("answer");
  const Together together;  // the messages about the results and the run's end go out together
  for (const ValuePointer& value : results_) value->Resolve(status);
  // Frees the memory that only this run still used before its answer is sent.
  inputs_.clear();
  wider_.clear();
  results_.clear();
  other_work_.clear();
  memory_.Drop();
  // Destroys its captures before the devices count as idle.
  const Done done = std::exchange(done_, nullptr);
  KILN_CHECK(done != nullptr) << label_ << " ended twice";
  done(status, times);
  first_run_.End(label_, program(), status);
}

}  // namespace kiln::runtime
