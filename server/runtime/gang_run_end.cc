// GangRun: the end of lists and of the run, failure and cancellation.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"
#include "server/runtime/gang_run.h"
#include "server/runtime/together.h"

namespace kiln::runtime {

void GangRun::Finished(int member, int64_t ticket, const drivers::SubmitResult& result) {
  absl::Status status = result.status, lost;
  if (!status.ok() && !*unwanted_) lost = WhyLost(member);
  // Other members end because of the lost device; its own error says more than theirs.
  if (!lost.ok()) status = lost;
  bool is_end = false;
  ManagedDevice& on = device(member);
  std::vector<ManagedDevice*> held;
  std::shared_ptr<GangRun> self;
  {
    absl::MutexLock lock(&mutex_);
    seconds_[member] += result.seconds;
    const size_t piece = pieces_ended_[member]++;
    AddCommandSeconds(pieces_ ? pieces_->first_commands[member][piece] : 0, result.command_seconds,
                      &command_seconds_[member]);
    if (failure_.ok() || (!lost.ok() && !*unwanted_)) SetFailure(status);
    if (--in_flight_ == 0) self.swap(self_);
    is_end = in_flight_ == 0 && all_submitted_;
    if (is_end) {
      ended_ = true;
      for (const Gang::Member& each : gang().members()) held.push_back(each.device);
    }
  }
  if (is_end) End();
  // The dispatchers are last: this object, and once nothing runs the devices, may be destroyed. A
  // run that has failed and has more pieces waits for its turn somewhere, and fails then.
  self.reset();
  on.dispatcher().Finished(ticket, result.seconds);
  for (ManagedDevice* device : held) device->Release();
}

absl::Status GangRun::WhyLost(int member) {
  const int size = gang().size();
  for (int i = 0; i < size; ++i) {
    ManagedDevice& asked = device((member + i) % size);  // the member's device first
    asked.CheckHealth();
    if (absl::Status lost = asked.CheckUsable(false); !lost.ok()) return lost;
  }
  return absl::OkStatus();
}

void GangRun::SetFailure(const absl::Status& why) {
  if (why.ok()) return;
  failure_ = why;
  for (const ValuePointer& value : results_) value->Doom(why);
}

bool GangRun::GiveUp(const absl::Status& why) {
  std::shared_ptr<drivers::SignalGroup> signals;
  {
    absl::MutexLock lock(&mutex_);
    if (ended_ || !failure_.ok()) return false;
    SetFailure(why);
    *unwanted_ = true;
    if (begun_) signals = signals_;
  }
  // Releases lists that wait for one another, without waiting for the devices.
  if (signals) signals->Abort(why);
  return true;
}

bool GangRun::Cancel() {
  bool all_stop = true;
  for (int i = 0; i < gang().size(); ++i) all_stop = all_stop && device(i).device().stops_lists();
  {
    absl::MutexLock lock(&mutex_);
    if (all_submitted_ && !all_stop) return false;
  }
  return GiveUp(CancelledRun());
}

void GangRun::Stop(const absl::Status& why) { GiveUp(why); }

void GangRun::Fail(const absl::Status& why) {
  std::vector<std::pair<ManagedDevice*, int64_t>> parked;
  std::vector<ManagedDevice*> held;
  bool is_end = false;
  {
    absl::MutexLock order(&order_.mutex);
    absl::MutexLock lock(&mutex_);
    if (all_submitted_ || ended_) return;
    if (failure_.ok()) SetFailure(why);
    all_submitted_ = true;
    ReleaseMemory();
    // Members that wait in other queues fail when their turn comes. The piece on the devices is
    // stopped if cancelled; after other errors Finished reports its end.
    if (!begun_ || absl::IsCancelled(why)) *unwanted_ = true;
    for (int i = 0; i < gang().size(); ++i) {
      if (tickets_[i] != 0) parked.emplace_back(&device(i), tickets_[i]);
      tickets_[i] = 0;
      if (begun_) held.push_back(&device(i));
    }
    ended_ = is_end = in_flight_ == 0;
  }
  const std::shared_ptr<GangRun> self = shared_from_this();
  if (is_end) End();
  for (const auto& [on, ticket] : parked) on->dispatcher().Finished(ticket, 0);
  if (!is_end) return;
  for (ManagedDevice* device : held) device->Release();
}

void GangRun::End() {
  absl::Status status;
  std::vector<double> seconds;
  {
    absl::MutexLock lock(&mutex_);
    status = failure_;
    seconds = seconds_;
  }
  // The run of an input may have failed on the devices after this run was submitted.
  if (status.ok()) status = InputFailure();
  if (status.ok()) {
    RecordTimes(seconds);
  } else {
    for (const Gang::Member& member : gang().members()) member.device->metrics().RunFailed();
  }
  log::Debug("run_ended", {{"run", label_},
                           {"program", bound_->program->short_digest()},
                           {"seconds", absl::StrCat(seconds[0])},
                           {"status", status.ok() ? "OK" : status.ToString()}});
  first_run_.Begin("answer");
  const Together together;  // the messages about the results and the run's end go out together
  for (const ValuePointer& value : results_) value->Resolve(status);
  inputs_.clear();
  results_.clear();
  work_.clear();
  memory_.reset();
  arena_charges_.clear();
  const Done done = std::exchange(done_, nullptr);
  done(status, seconds);
  first_run_.End(label_, *bound_->program, status);
}

}  // namespace kiln::runtime
