// Run: creation, and its turns in the queues.
#include "server/runtime/run/run.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/log/log.h"

namespace kiln::runtime {

// The run in the queue of a device that is not its first.
class Run::OtherMember : public fairness::Work {
 public:
  OtherMember(std::shared_ptr<Run> run, int number) : run_(std::move(run)), number_(number) {}

  double predicted_seconds() const override { return run_->predicted_seconds(); }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    return run_->TakeTurn(number_, ticket, waited);
  }
  void Stop(const absl::Status& why) override { run_->Stop(why); }
  bool is_wanted() const override { return run_->is_wanted(); }
  bool is_users() const override { return run_->is_users(); }
  std::string label() const override { return run_->label_; }
  void Fail(const absl::Status& status) override { run_->Fail(status); }

 private:
  const std::shared_ptr<Run> run_;
  const int number_;
};

absl::StatusOr<std::shared_ptr<Run>> Run::Create(
    std::string label, std::shared_ptr<const BoundProgram> bound, std::vector<ValuePointer> inputs,
    absl::Span<const std::shared_ptr<buffers::Account>> accounts, fairness::SubmissionOrder* order,
    Done done, int references) {
  KILN_CHECK(bound != nullptr && done != nullptr) << label;
  KILN_CHECK_GE(accounts.size(), bound->program->sharded().size()) << label;
  KILN_CHECK(order != nullptr || !bound->program->sharded().is_joint()) << label;
  for (const ShardedProgram::Member& member : bound->program->sharded().members())
    if (absl::Status status = member.device->CheckUsable(false); !status.ok()) return status;
  std::shared_ptr<Run> run(new Run(std::move(label), *bound->program, order));
  // After a loss, both are made again on their next use, at the expense of that user.
  ManagedDevice& first = bound->program->device();
  auto renewed = Renewed(std::move(bound));
  if (!renewed.ok()) return first.AfterFailure(renewed.status());
  run->bound_ = *std::move(renewed);
  auto loaded = run->program().OnDevices();
  if (!loaded.ok()) return loaded.status();
  run->loaded_ = *std::move(loaded);
  run->inputs_ = std::move(inputs);
  // All memory except an arena is taken before the run is queued, so that a run without memory
  // fails at once. For the arena, one that is large enough is reserved.
  if (absl::Status status = run->Allocate(accounts, references); !status.ok()) return status;
  if (run->sharded().is_joint()) {
    // Now, since all queues charge the same first piece. On one device it is cut when its turn has
    // come, by the latest times.
    auto pieces = run->program().CutIntoPieces(run->loaded_);
    if (!pieces.ok()) return pieces.status();
    run->pieces_ = *std::move(pieces);
  }
  run->user_ = accounts.front()->user();
  run->done_ = std::move(done);
  run->first_run_.Begin("wait_for_device");
  absl::MutexLock lock(&run->mutex_);
  run->ended_.resize(run->size());
  return run;
}

absl::InlinedVector<std::shared_ptr<fairness::Work>, 1> Run::MakeWork() {
  absl::InlinedVector<std::shared_ptr<fairness::Work>, 1> work;
  KILN_CHECK(other_work_.empty()) << label_;
  work.push_back(shared_from_this());
  for (int member = 1; member < size(); ++member) {
    work.push_back(std::make_shared<OtherMember>(shared_from_this(), member));
    other_work_.push_back(work.back());
  }
  KILN_CHECK_EQ(work.size(), size()) << label_;
  return work;
}

double Run::predicted_seconds() const {
  if (may_end_early_) return program().device().dispatcher().limits().slice_seconds;
  if (pieces_ == nullptr) return program().first_seconds(bound_->variables != nullptr);
  return pieces_->seconds[std::min(next_.load(), pieces() - 1)];
}

absl::StatusOr<fairness::Work::Handed> Run::TakeTurn(int member, int64_t ticket,
                                                     absl::Duration waited) {
  std::vector<Refused> refused;
  bool is_last = false, goes_on = true;
  {
    absl::MutexLockMaybe order(order_mutex());
    if (turns_ + 1 < size()) return Park(member, ticket);
    const absl::StatusOr<bool> begun = begun_ ? CheckGoesOn() : Begin(member, ticket, waited);
    if (!begun.ok()) return begun.status();
    if (!*begun) return Handed::kNoRoom;
    if (trace::IsOn(device(member).trace_recorder())) TraceWait(member, waited);
    // Read before the submission: after the last list is submitted, this run may end at once.
    is_last = next_.load() + 1 == pieces();
    auto submission = Count(is_last);
    if (!submission.ok()) return submission.status();
    turns_ = 0;
    if (!may_end_early_) next_.store(submission->piece + 1, std::memory_order_relaxed);
    if (!is_last) {
      // Before anything that follows it in the flows can start.
      goes_on = QueueNext();
    } else if (!may_end_early_) {
      // The next user of this memory is submitted after this run.
      memory_.Release(program());
    }
    refused = SubmitAll(*submission, member, ticket);
  }
  if (!goes_on) Fail(absl::CancelledError("the session was closed"));
  absl::Status failure;
  for (const Refused& each : refused) {
    drivers::SubmitResult result;
    result.status = each.why;
    Finished(each.member, each.ticket, result);
    if (each.member == member) failure = each.why;
  }
  // Work that follows in the same flow may be ready now.
  for (int i = 0; i < size(); ++i)
    if (i != member) device(i).dispatcher().LookAgain();
  if (!failure.ok()) return failure;
  if (!is_last) return Handed::kSome;
  return may_end_early_ ? Handed::kAlone : Handed::kAll;
}

absl::StatusOr<fairness::Work::Handed> Run::Park(int member, int64_t ticket) {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  KILN_CHECK_NE(ticket, 0) << label_;
  parked_.resize(size());
  KILN_CHECK_EQ(parked_[member], 0) << label_ << " has two turns on " << device(member).name();
  parked_[member] = ticket;
  ++turns_;
  KILN_CHECK_LT(turns_, size()) << label_;
  device(member).dispatcher().Park(ticket, begun_);
  return Handed::kAll;
}

absl::StatusOr<bool> Run::CheckGoesOn() const {
  {
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
  }
  // Pending inputs are no obstacle: the runs that make them were submitted to all of these devices
  // before, and lists run in order.
  if (absl::Status status = InputFailure(); !status.ok()) return status;
  for (const ShardedProgram::Member& member : sharded().members())
    if (absl::Status status = member.device->CheckUsable(false); !status.ok()) return status;
  // For every piece: a device may have been lost and revived since the one before.
  if (absl::Status status = Loss(); !status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Run::Begin(int member, int64_t ticket, absl::Duration waited) {
  KILN_CHECK(!begun_) << label_;
  // First, so that a device that is lost from here on is not revived before ReleaseDevices, and an
  // earlier loss and revival is noticed.
  HoldDevices();
  absl::StatusOr<bool> begins = CheckGoesOn();
  if (begins.ok()) begins = TakeMemory(member);
  if (!begins.ok() || !*begins) {
    ReleaseDevices();
    return begins;
  }
  begun_ = true;
  waited_ = waited;
  first_run_.Begin("run");
  for (const ShardedProgram::Member& each : sharded().members())
    each.device->metrics().RunStarted(waited);
  sampled_ = program().TakeSample();
  LogStarted(member, ticket);
  if (absl::Status status = Widen(); !status.ok()) return status;
  return true;
}

absl::StatusOr<bool> Run::TakeMemory(int member) {
  // A daemon that is shutting down begins nothing; parked work stays parked.
  for (int i = 0; i < size(); ++i)
    if (i != member && !device(i).dispatcher().Begins()) return false;
  std::shared_ptr<const Pieces> pieces = pieces_;
  if (!sharded().is_joint()) {
    auto cut = program().CutIntoPieces(loaded_);
    if (!cut.ok()) return cut.status();
    pieces = *std::move(cut);
  }
  const bool may_end_early = program().MayEndEarly(/*varies=*/bound_->variables != nullptr);
  auto taken = memory_.Take(program(), /*hold=*/pieces != nullptr || may_end_early);
  if (!taken.ok() || !*taken) return taken;
  pieces_ = std::move(pieces);
  may_end_early_ = may_end_early;
  return true;
}

absl::StatusOr<Run::Submission> Run::Count(bool is_last) {
  absl::MutexLock lock(&mutex_);
  // The run was cancelled after the last check.
  if (!failure_.ok()) return failure_;
  KILN_CHECK(!all_submitted_) << label_;
  all_submitted_ = is_last;
  in_flight_ += size();
  // Keeps this alive for the devices. A captured shared_ptr would make the function allocate.
  self_ = shared_from_this();
  KILN_VALIDATE(*this, 1);
  if (loaded_->signals != nullptr && signals_ == nullptr)
    signals_ = std::make_shared<drivers::SignalGroup>(loaded_->signals);
  return Submission{next_.load(std::memory_order_relaxed), begin_, signals_};
}

bool Run::QueueNext() {
  bool all = true;
  for (int i = 0; i < static_cast<int>(parked_.size()); ++i) {
    if (parked_[i] == 0) continue;
    const std::shared_ptr<fairness::Work> work = i == 0 ? shared_from_this() : other_work_[i - 1];
    all = device(i).dispatcher().Continue(parked_[i], work, predicted_seconds()) && all;
  }
  return all;
}

std::vector<Run::Refused> Run::SubmitAll(const Submission& submission, int member, int64_t ticket) {
  std::vector<Refused> refused;
  KILN_CHECK_LT(submission.piece, pieces()) << label_;
  for (int i = 0; i < size(); ++i) {
    const int64_t own = i == member ? ticket : std::exchange(parked_[i], 0);
    KILN_CHECK_NE(own, 0) << label_ << " has no turn on " << device(i).name();
    const absl::Status status = SubmitList(submission, i, own);
    // After the list: from here on, later work of its flow that uses its results may be submitted.
    if (i != member) device(i).dispatcher().Unpark(own);
    if (status.ok()) continue;
    // The members already submitted wait for this one.
    if (submission.signals) submission.signals->Abort(status);
    refused.push_back({i, own, status});
  }
  return refused;
}

absl::Status Run::SubmitList(const Submission& submission, int member, int64_t ticket) {
  const Slots slots = MakeSlots(member);
  for (const drivers::Buffer* slot : slots) KILN_DCHECK(slot != nullptr) << label_;
  drivers::SubmitOptions options;
  options.begin = submission.begin;
  options.group = submission.signals;
  if (may_end_early_) {
    fairness::Dispatcher& dispatcher = device(member).dispatcher();
    options.slice_seconds = dispatcher.limits().slice_seconds;
    options.goes_on = [&dispatcher, ticket](double seconds) {
      return dispatcher.GoesOn(ticket, seconds);
    };
  }
  if (written_in_place_ > 0) {
    options.begin_commit = [this] { return BeginCommit(); };
    options.commit = loaded_->members[member].commit;
    // A piece counts from its first command. Pieces after the one that commits ask once more.
    if (pieces_ != nullptr) {
      const int first = pieces_->lists[member][submission.piece].first_command;
      options.commit = std::max(0, options.commit - first);
    }
  }
  options.time_commands = sampled_;
  options.unwanted = unwanted_;
  drivers::PreparedList& list = pieces_ == nullptr ? *loaded_->members[member].list
                                                   : *pieces_->lists[member][submission.piece].list;
  return device(member).device().Submit(
      list, slots, std::move(options), [this, member, ticket](const drivers::SubmitResult& result) {
        Finished(member, ticket, result);
      });
}

void Run::LogStarted(int member, int64_t ticket) const {
  if (!log::IsOn(log::Level::kDebug)) return;
  log::Debug("run_started", {{"run", label_},
                             {"program", program().short_digest()},
                             {"device", device(member).name()},
                             {"devices", absl::StrCat(size())},
                             {"pieces", absl::StrCat(pieces())},
                             {"in_place", absl::StrCat(written_in_place_)},
                             {"ticket", absl::StrCat(ticket)},
                             {"timed_by_kernel", sampled_ ? "yes" : "no"}});
}

}  // namespace kiln::runtime
