#include "server/runtime/gang_run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/log/log.h"

namespace kiln::runtime {

// The run in the queue of one device.
class GangRun::Member : public fairness::Work {
 public:
  Member(std::shared_ptr<GangRun> run, int number) : run_(std::move(run)), number_(number) {}

  double predicted_seconds() const override { return run_->first_seconds(); }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    return run_->Ready(number_, ticket, waited);
  }
  void Stop(const absl::Status& why) override { run_->Stop(why); }
  bool is_wanted() const override { return !*run_->unwanted_; }
  std::string label() const override { return run_->label_; }
  void Fail(const absl::Status& status) override { run_->Fail(status); }

 private:
  const std::shared_ptr<GangRun> run_;
  const int number_;
};

absl::StatusOr<std::shared_ptr<GangRun>> GangRun::Create(
    std::string label, std::shared_ptr<const BoundProgram> bound, std::vector<ValuePointer> inputs,
    const std::vector<std::shared_ptr<buffers::Account>>& accounts, fairness::GangOrder* order,
    Done done) {
  std::shared_ptr<GangRun> run(new GangRun(std::move(label), std::move(bound), order));
  const int size = run->gang().size();
  for (int i = 0; i < size; ++i) {
    if (absl::Status status = run->device(i).CheckUsable(false); !status.ok()) return status;
  }
  auto loaded = run->gang().OnDevices();
  if (!loaded.ok()) return loaded.status();
  run->loaded_ = *std::move(loaded);
  if (absl::Status status = run->Allocate(accounts); !status.ok()) return status;
  auto pieces = run->bound_->program->CutGangIntoPieces(run->loaded_);
  if (!pieces.ok()) return pieces.status();
  run->pieces_ = *std::move(pieces);
  run->inputs_ = std::move(inputs);
  run->user_ = accounts.front()->user();
  run->done_ = std::move(done);
  run->tickets_.resize(size);
  run->command_seconds_.resize(size);
  absl::MutexLock lock(&run->mutex_);
  run->seconds_.resize(size);
  return run;
}

GangRun::~GangRun() = default;

double GangRun::first_seconds() const {
  return pieces_ == nullptr ? bound_->program->predicted_seconds() : pieces_->seconds[0];
}

std::vector<std::shared_ptr<fairness::Work>> GangRun::MakeWork() {
  for (int member = 0; member < gang().size(); ++member)
    work_.push_back(std::make_shared<Member>(shared_from_this(), member));
  return work_;
}

absl::Status GangRun::CheckGoesOn() const {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  // Inputs that are pending are no obstacle: what makes them was submitted to all of these devices
  // before.
  if (absl::Status status = InputFailure(); !status.ok()) return status;
  for (int i = 0; i < gang().size(); ++i) {
    if (absl::Status status = device(i).CheckUsable(false); !status.ok()) return status;
    const bool is_lost = loaded_->members[i].life != device(i).pool()->life();
    if (is_lost || HasLost(i)) return device(i).pool()->LostError();
  }
  return absl::OkStatus();
}

absl::StatusOr<fairness::Work::Handed> GangRun::Begin() {
  using Handed = fairness::Work::Handed;
  if (memory_->is_held) return Handed::kNoRoom;
  // First: whatever is lost from here on is not revived before it is released, and what was lost
  // and revived before is seen.
  for (const Gang::Member& member : gang().members()) member.device->Hold();
  absl::StatusOr<Handed> handed = Handed::kAll;
  if (absl::Status status = CheckGoesOn(); !status.ok()) handed = status;
  // A daemon that stops begins nothing any more; what has been parked stays so.
  const auto begins = [](const Gang::Member& m) { return m.device->dispatcher().Begins(); };
  if (handed.ok() && !std::all_of(gang().members().begin(), gang().members().end(), begins))
    handed = Handed::kNoRoom;
  if (handed.ok() && *handed == Handed::kAll) {
    memory_->is_held = holds_memory_ = pieces_ != nullptr;
    return handed;
  }
  for (const Gang::Member& member : gang().members()) member.device->Release();
  return handed;
}

absl::StatusOr<fairness::Work::Handed> GangRun::Ready(int member, int64_t ticket,
                                                      absl::Duration waited) {
  using Handed = fairness::Work::Handed;
  std::vector<Refused> refused;
  bool goes_on = true;
  {
    absl::MutexLock order(&order_.mutex);
    {
      absl::MutexLock lock(&mutex_);
      if (!failure_.ok()) return failure_;
    }
    const bool is_last = ready_ + 1 == gang().size();
    const bool has_begun = next_ > 0;
    if (is_last && has_begun) {
      if (absl::Status status = CheckGoesOn(); !status.ok()) return status;
    } else if (is_last) {
      const absl::StatusOr<Handed> begun = Begin();
      if (!begun.ok() || *begun != Handed::kAll) return begun;
    }
    tickets_[member] = ticket;
    ++ready_;
    if (!is_last) {
      device(member).dispatcher().Park(ticket, has_begun);
      return Handed::kAll;
    }
    ready_ = 0;
    const std::vector<int64_t> tickets =
        std::exchange(tickets_, std::vector<int64_t>(tickets_.size()));
    if (next_ + 1 == pieces()) {
      // What takes it next is submitted behind this.
      ReleaseMemory();
    } else {
      // Before anything behind it in the flows can start.
      goes_on = QueueNext(tickets);
    }
    for (int i = 0; i < gang().size(); ++i) {
      if (!has_begun) device(i).metrics().RunStarted(waited);
    }
    refused = SubmitAll(member, tickets);
  }
  if (!goes_on) Fail(absl::CancelledError("the session has ended"));
  drivers::SubmitResult result;
  for (const Refused& each : refused) {
    result.status = each.why;
    Finished(each.member, each.ticket, result);
  }
  // What comes behind it in the same flow.
  for (int i = 0; i < gang().size(); ++i)
    if (i != member) device(i).dispatcher().LookAgain();
  return Handed::kAll;
}

bool GangRun::QueueNext(const std::vector<int64_t>& tickets) {
  bool all = true;
  for (int i = 0; i < gang().size(); ++i) {
    const double seconds = pieces_->seconds[next_ + 1];
    all = device(i).dispatcher().Continue(tickets[i], work_[i], seconds) && all;
  }
  return all;
}

void GangRun::ReleaseMemory() {
  if (!std::exchange(holds_memory_, false)) return;
  memory_->is_held = false;
  for (const Gang::Member& member : gang().members()) member.device->dispatcher().ReleaseHeld();
}

std::vector<GangRun::Refused> GangRun::SubmitAll(int last, const std::vector<int64_t>& tickets) {
  const size_t piece = next_++;
  if (piece == 0) {
    log::Debug("run_started", {{"run", label_},
                               {"program", bound_->program->short_digest()},
                               {"devices", absl::StrCat(gang().size())},
                               {"pieces", absl::StrCat(pieces())}});
    sampled_ = bound_->program->TakeSample();
    signals_ = std::make_shared<drivers::SignalGroup>(loaded_->signals);
  }
  {
    absl::MutexLock lock(&mutex_);
    begun_ = true;
    all_submitted_ = next_ == pieces();
    in_flight_ += gang().size();
    self_ = shared_from_this();
  }
  std::vector<Refused> refused;
  for (int i = 0; i < gang().size(); ++i) {
    const absl::Status status = SubmitOne(i, piece, tickets[i]);
    // Behind the list: from here on others of its flow may be submitted, which use its results.
    if (i != last) device(i).dispatcher().Unpark(tickets[i]);
    if (status.ok()) continue;
    // Those that have been submitted wait for this one.
    signals_->Abort(status);
    refused.push_back({i, tickets[i], status});
  }
  return refused;
}

absl::Status GangRun::SubmitOne(int member, size_t piece, int64_t ticket) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  std::vector<drivers::Buffer*> slots;
  // The list names nothing that another member has, but every slot has a buffer.
  const auto add = [&](const buffers::Value* value) {
    slots.push_back(value ? value->buffer() : loaded_->members[member].place.get());
  };
  for (size_t i = 0; i < inputs_.size(); ++i) add(OnMember(*inputs_[i], MemberOfInput(i), member));
  for (size_t i = 0; i < results_.size(); ++i)
    add(OnMember(*results_[i], MemberOfResult(i), member));
  gang().AddSlots(*loaded_, *memory_, member, &slots);
  drivers::SubmitOptions options;
  options.time_commands = sampled_ && IsTimed(member);
  options.group = signals_;
  options.unwanted = unwanted_;
  drivers::PreparedList& list =
      pieces_ == nullptr ? *loaded_->members[member].list : *pieces_->lists[member][piece];
  return device(member).device().Submit(
      list, slots, std::move(options), [this, member, ticket](const drivers::SubmitResult& result) {
        Finished(member, ticket, result);
      });
}

void GangRun::Finished(int member, int64_t ticket, const drivers::SubmitResult& result) {
  absl::Status status = result.status;
  const bool is_wanted = !*unwanted_;
  if (!status.ok() && is_wanted) status = device(member).AfterFailure(status);
  // Others end because of it; what a lost device says tells more than what they heard.
  const bool is_cause = !status.ok() && is_wanted && !device(member).CheckUsable(false).ok();
  bool is_end = false;
  ManagedDevice& on = device(member);
  std::vector<ManagedDevice*> held;
  std::shared_ptr<GangRun> self;
  {
    absl::MutexLock lock(&mutex_);
    seconds_[member] += result.seconds;
    command_seconds_[member].insert(command_seconds_[member].end(), result.command_seconds.begin(),
                                    result.command_seconds.end());
    if (failure_.ok() || (is_cause && !*unwanted_)) SetFailure(status);
    if (--in_flight_ == 0) self.swap(self_);
    is_end = in_flight_ == 0 && all_submitted_;
    if (is_end) {
      ended_ = true;
      for (const Gang::Member& each : gang().members()) held.push_back(each.device);
    }
  }
  if (is_end) End();
  // The dispatchers come last: this may be gone, and once nothing runs, so may the devices. A run
  // that has failed and has more pieces waits for its turn somewhere, and fails then.
  self.reset();
  on.dispatcher().Finished(ticket, result.seconds);
  for (ManagedDevice* device : held) device->Release();
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
  // Those that wait for one another need not be told by the devices.
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
    // What still waits in other queues fails there when its turn comes. The piece on the devices is
    // stopped, too; not after other errors, which Finished reports.
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
  // An input's own run may have failed on the devices after this one was submitted.
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
  for (const ValuePointer& value : results_) value->Resolve(status);
  inputs_.clear();
  results_.clear();
  work_.clear();
  memory_.reset();
  arena_charges_.clear();
  const Done done = std::exchange(done_, nullptr);
  done(status, seconds);
}

}  // namespace kiln::runtime
