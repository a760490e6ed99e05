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
  run->first_run_.Begin("wait_for_device");
  run->tickets_.resize(size);
  run->command_seconds_.resize(size);
  absl::MutexLock lock(&run->mutex_);
  run->seconds_.resize(size);
  run->pieces_ended_.resize(size);
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
  // Pending inputs are no obstacle: the runs that make them were submitted to all of these devices
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
  // First, so that a device that is lost from here on is not revived before Release, and an earlier
  // loss and revival is noticed.
  for (const Gang::Member& member : gang().members()) member.device->Hold();
  absl::StatusOr<Handed> handed = Handed::kAll;
  if (absl::Status status = CheckGoesOn(); !status.ok()) handed = status;
  // A daemon that is shutting down begins nothing; parked work stays parked.
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
      // The next user of this memory is submitted after this run.
      ReleaseMemory();
    } else {
      // Before anything that follows it in the flows can start.
      goes_on = QueueNext(tickets);
    }
    for (int i = 0; i < gang().size(); ++i) {
      if (!has_begun) device(i).metrics().RunStarted(waited);
    }
    refused = SubmitAll(member, tickets);
  }
  if (!goes_on) Fail(absl::CancelledError("the session was closed"));
  drivers::SubmitResult result;
  for (const Refused& each : refused) {
    result.status = each.why;
    Finished(each.member, each.ticket, result);
  }
  // Work that follows in the same flow may be ready now.
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
    if (!begun_) first_run_.Begin("run");
    begun_ = true;
    all_submitted_ = next_ == pieces();
    in_flight_ += gang().size();
    self_ = shared_from_this();
  }
  std::vector<Refused> refused;
  for (int i = 0; i < gang().size(); ++i) {
    const absl::Status status = SubmitOne(i, piece, tickets[i]);
    // After the list: from here on, later work of its flow that uses its results may be submitted.
    if (i != last) device(i).dispatcher().Unpark(tickets[i]);
    if (status.ok()) continue;
    // The members already submitted wait for this one.
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
  // The list names no value that only another member has, but every slot needs a buffer.
  const auto add = [&](const buffers::Value* value) {
    slots.push_back(value ? value->buffer() : loaded_->members[member].place.get());
  };
  for (size_t i = 0; i < inputs_.size(); ++i) add(OnMember(*inputs_[i], MemberOfInput(i), member));
  for (size_t i = 0; i < results_.size(); ++i)
    add(OnMember(*results_[i], MemberOfResult(i), member));
  gang().AddSlots(*loaded_, *memory_, member, &slots);
  drivers::SubmitOptions options;
  options.time_commands = sampled_;
  options.group = signals_;
  options.unwanted = unwanted_;
  drivers::PreparedList& list =
      pieces_ == nullptr ? *loaded_->members[member].list : *pieces_->lists[member][piece];
  return device(member).device().Submit(
      list, slots, std::move(options), [this, member, ticket](const drivers::SubmitResult& result) {
        Finished(member, ticket, result);
      });
}

}  // namespace kiln::runtime
