#include "server/tuner/fair_trials.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/check/check.h"
#include "server/quota/resource.h"

namespace kiln::tuner {
namespace {

// The least that a user may have.
constexpr double kWeightMin = 1.0 / quota::kUsualWeight;

// A loop that waits for each of its runs lets one step in between two of them.
constexpr double kStepsInASlice = 8;

// A step of a trial process that was lost is repeated once; the rest is for what else may abort
// one.
constexpr int kAttemptsMax = 4;

// How often a step that waits for users looks.
constexpr absl::Duration kLookAtUsers = absl::Milliseconds(5);

// A list of this length is alone on the device: the queue hands it over when nothing is in flight,
// and nothing else until it has ended.
double SecondsAlone(const fairness::QueueLimits& limits) { return limits.credit_seconds(); }

}  // namespace

// The place of a step in the queue. The dispatcher's threads call it, and the one that waits.
class FairTrials::Turn : public fairness::Work {
 public:
  Turn(double predicted_seconds, std::string label, fairness::Dispatcher& dispatcher,
       std::function<absl::Time()> now, std::function<void(const absl::Status&)> interrupt)
      : predicted_seconds_(predicted_seconds),
        label_(std::move(label)),
        dispatcher_(dispatcher),
        now_(std::move(now)),
        interrupt_(std::move(interrupt)) {}

  double predicted_seconds() const override { return predicted_seconds_; }
  std::string label() const override { return label_; }

  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    const absl::Time now = now_();
    absl::MutexLock lock(&mutex_);
    if (!failure_.ok()) return failure_;
    KILN_CHECK(state_ == State::kWaits);
    state_ = State::kRuns;
    ticket_ = ticket;
    begin_ = now;
    return Handed::kAll;
  }

  void Fail(const absl::Status& status) override {
    absl::MutexLock lock(&mutex_);
    if (failure_.ok()) failure_ = status;
    state_ = State::kEnded;
  }

  bool is_users() const override { return false; }

  bool is_wanted() const override {
    absl::MutexLock lock(&mutex_);
    return failure_.ok();
  }

  // The turn ends at once, so that nothing waits for the step. The thread that runs it finds
  // `why` when it returns.
  void Stop(const absl::Status& why) override {
    GiveUp(why, [&] { interrupt_(why); });
  }
  // The same for a pause, which the runner knows of already.
  void Pause() {
    GiveUp(TrialsPaused(), [] {});
  }

  // Waits for the turn. Returns why there will be none.
  absl::Status Await() const {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(this, &Turn::Decided));
    return state_ == State::kRuns ? absl::OkStatus() : failure_;
  }

  // The step has ended. Returns its seconds, or why it was stopped. The runner and the dispatcher
  // may be destroyed afterwards.
  absl::StatusOr<double> End() {
    const double seconds = Finish();
    absl::MutexLock lock(&mutex_);
    state_ = State::kEnded;
    mutex_.Await(absl::Condition(this, &Turn::IsFree));
    if (!failure_.ok()) return failure_;
    return seconds;
  }

 private:
  enum class State { kWaits, kRuns, kEnded };

  bool Decided() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return state_ != State::kWaits; }
  bool IsFree() const ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return stopping_ == 0; }

  void GiveUp(const absl::Status& why, absl::FunctionRef<void()> interrupt) {
    {
      absl::MutexLock lock(&mutex_);
      if (state_ == State::kEnded || !failure_.ok()) return;
      failure_ = why;
      if (state_ == State::kWaits) return;
      ++stopping_;
    }
    interrupt();
    Finish();
    absl::MutexLock lock(&mutex_);
    --stopping_;
  }

  // Ends the turn, once.
  double Finish() {
    const absl::Time now = now_();
    double seconds = 0;
    std::optional<int64_t> ticket;
    {
      absl::MutexLock lock(&mutex_);
      seconds = absl::ToDoubleSeconds(now - begin_);
      ticket = std::exchange(ticket_, std::nullopt);
    }
    if (ticket) dispatcher_.Finished(*ticket, seconds);
    return seconds;
  }

  const double predicted_seconds_;
  const std::string label_;
  fairness::Dispatcher& dispatcher_;
  const std::function<absl::Time()> now_;
  const std::function<void(const absl::Status&)> interrupt_;
  mutable absl::Mutex mutex_;
  State state_ ABSL_GUARDED_BY(mutex_) = State::kWaits;
  std::optional<int64_t> ticket_ ABSL_GUARDED_BY(mutex_);  // until Finished was called for it
  absl::Time begin_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  int stopping_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of Stop that use the runner
};

class FairTrials::FairTrial : public Trial {
 public:
  FairTrial(FairTrials& trials, std::unique_ptr<Trial> trial)
      : trials_(trials), trial_(std::move(trial)) {}

  absl::StatusOr<double> Time(int times, double seconds_max) override {
    if (absl::Status status = MakeReady({}); !status.ok()) return status;
    double least = std::numeric_limits<double>::infinity();
    double left = seconds_max;
    while (times > 0) {
      const int runs = RunsOfAStep(times);
      absl::StatusOr<double> seconds = absl::UnknownError("it has not run");
      const auto taken = Step({}, seconds_ * runs, [&] {
        seconds = trial_->Time(runs, left);
        return seconds.status();
      });
      if (!taken.ok()) return taken.status();
      seconds_ = *seconds;
      least = std::min(least, *seconds);
      times -= runs;
      left -= *taken;
      if (times > 0 && left <= 0)
        return absl::DeadlineExceededError(absl::StrCat("it ran longer than ", seconds_max, " s"));
    }
    return least;
  }

  absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) override {
    if (absl::Status status = MakeReady(inputs); !status.ok()) return status;
    absl::StatusOr<Outputs> outputs = absl::UnknownError("it has not run");
    const auto taken = Step(inputs, seconds_, [&] {
      outputs = trial_->Run(inputs, seconds_max);
      return outputs.status();
    });
    if (!taken.ok()) return taken.status();
    return outputs;
  }

  absl::Status Load() override {
    return trials_.Repeat([&] { return trial_->Load(); });
  }

 private:
  // Before its turn, so that the device does not wait for it.
  absl::Status MakeReady(const Inputs& inputs) {
    return trials_.Repeat([&] {
      if (absl::Status status = trial_->Load(); !status.ok()) return status;
      return trials_.Prepare(inputs);
    });
  }
  // Runs the step in a turn, and again in another one if it is aborted. Returns the seconds of the
  // last turn, or the step's error. Requires: it is ready.
  absl::StatusOr<double> Step(const Inputs& inputs, double predicted_seconds,
                              absl::FunctionRef<absl::Status()> step) {
    absl::StatusOr<double> taken = 0;
    bool is_ready = true;
    const absl::Status status = trials_.Repeat([&] {
      if (!std::exchange(is_ready, false))
        if (absl::Status ready = MakeReady(inputs); !ready.ok()) return ready;
      absl::Status done;
      taken = trials_.InTurn(predicted_seconds, [&] { done = step(); });
      return taken.ok() ? done : taken.status();
    });
    if (!status.ok()) return status;
    return taken;
  }
  // One, as long as nothing is known.
  int RunsOfAStep(int times) const {
    if (seconds_ <= 0) return 1;
    const double fit = std::floor(trials_.step_seconds_ / seconds_);
    return static_cast<int>(std::clamp(fit, 1.0, static_cast<double>(times)));
  }

  FairTrials& trials_;
  const std::unique_ptr<Trial> trial_;
  double seconds_ = 0;  // of a run; 0: not known
};

FairTrials::FairTrials(std::unique_ptr<TrialRunner> runner, fairness::Dispatcher& dispatcher,
                       Options options)
    : runner_(std::move(runner)),
      dispatcher_(dispatcher),
      options_(std::move(options)),
      step_seconds_(options_.step_seconds > 0 ? options_.step_seconds
                                              : SecondsAlone(dispatcher.limits()) / kStepsInASlice),
      flow_(dispatcher.AddFlow(kTunerUser, kWeightMin, fairness::Priority::kBatch)) {
  KILN_CHECK(options_.steady_now != nullptr);
}

FairTrials::~FairTrials() {
  runner_->SetOnYield(nullptr);
  dispatcher_.RemoveFlow(flow_);
}

absl::StatusOr<std::unique_ptr<Trial>> FairTrials::Load(const drivers::KernelImage& image) {
  return LoadBy([&] { return runner_->Load(image); });
}

absl::StatusOr<std::unique_ptr<Trial>> FairTrials::LoadSteps(absl::Span<const TrialStep> steps) {
  return LoadBy([&] { return runner_->LoadSteps(steps); });
}

absl::StatusOr<std::unique_ptr<Trial>> FairTrials::LoadBy(
    absl::FunctionRef<absl::StatusOr<std::unique_ptr<Trial>>()> load) {
  std::unique_ptr<Trial> trial;
  const absl::Status loaded = Repeat([&] {
    auto made = load();
    if (made.ok()) trial = *std::move(made);
    return made.status();
  });
  if (!loaded.ok()) return loaded;
  return std::make_unique<FairTrial>(*this, std::move(trial));
}

absl::StatusOr<int64_t> FairTrials::AwaitResume() {
  absl::MutexLock lock(&mutex_);
  const auto goes_on = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return !is_paused_ || !stopped_.ok();
  };
  mutex_.Await(absl::Condition(&goes_on));
  if (!stopped_.ok()) return stopped_;
  return pauses_;
}

absl::Status FairTrials::Repeat(absl::FunctionRef<absl::Status()> attempt) {
  int aborted = 0;
  while (true) {
    const absl::StatusOr<int64_t> pauses_before = AwaitResume();
    if (!pauses_before.ok()) return pauses_before.status();
    absl::Status status = attempt();
    if (!absl::IsAborted(status)) return status;
    if (pauses() != *pauses_before) continue;
    if (++aborted == kAttemptsMax) return absl::UnavailableError(status.message());
  }
}

int64_t FairTrials::pauses() {
  absl::MutexLock lock(&mutex_);
  return pauses_;
}

void FairTrials::Pause() {
  std::shared_ptr<Turn> turn;
  {
    absl::MutexLock lock(&mutex_);
    // If it has yielded, the runner still has to return what it holds.
    if (!is_paused_) ++pauses_;
    is_paused_ = true;
    turn = turn_;
  }
  runner_->Pause();
  if (turn == nullptr) return;
  turn->Pause();
  dispatcher_.DropUnwanted(flow_);
}

void FairTrials::Resume() {
  // First the runner, which those who wait use then.
  runner_->Resume();
  absl::MutexLock lock(&mutex_);
  is_paused_ = false;
}

void FairTrials::SetOnYield(std::function<void()> on_yield) {
  if (on_yield == nullptr) return runner_->SetOnYield(nullptr);
  runner_->SetOnYield([this, on_yield = std::move(on_yield)] {
    {
      absl::MutexLock lock(&mutex_);
      if (!is_paused_) ++pauses_;
      is_paused_ = true;
    }
    on_yield();
  });
}

void FairTrials::Stop(const absl::Status& why) {
  std::shared_ptr<Turn> turn;
  {
    absl::MutexLock lock(&mutex_);
    if (!stopped_.ok()) return;
    stopped_ = why;
    turn = turn_;
  }
  // Inputs may be prepared just now, without a turn.
  runner_->Stop(why);
  if (turn == nullptr) return;
  turn->Stop(why);
  dispatcher_.DropUnwanted(flow_);
}

absl::Status FairTrials::HaltedLocked() const {
  return stopped_.ok() && is_paused_ ? TrialsPaused() : stopped_;
}

absl::Status FairTrials::AwaitUsers() {
  const absl::Duration quiet = absl::Seconds(options_.quiet_seconds);
  while (true) {
    const absl::Time now = options_.steady_now();
    const fairness::UsersWork users = dispatcher_.users_work();
    const bool is_quiet = !users.is_there && now - users.last >= quiet;
    if (is_quiet || now >= next_step_) return absl::OkStatus();
    const auto is_halted = [this]()
                               ABSL_SHARED_LOCKS_REQUIRED(mutex_) { return !HaltedLocked().ok(); };
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(absl::Condition(&is_halted), kLookAtUsers)) return HaltedLocked();
  }
}

absl::StatusOr<double> FairTrials::InTurn(double predicted_seconds,
                                          absl::FunctionRef<void()> step) {
  if (options_.quiet_seconds > 0)
    if (absl::Status halted = AwaitUsers(); !halted.ok()) return halted;
  const auto turn = std::make_shared<Turn>(
      std::max(predicted_seconds, SecondsAlone(dispatcher_.limits())), options_.label, dispatcher_,
      options_.steady_now, [this](const absl::Status& why) { runner_->Stop(why); });
  {
    absl::MutexLock lock(&mutex_);
    if (absl::Status halted = HaltedLocked(); !halted.ok()) return halted;
    turn_ = turn;
  }
  // If Stop is called from now on, the queue refuses the work or Stop drops it.
  dispatcher_.Enqueue(flow_, turn);
  const absl::Status refused = turn->Await();
  absl::StatusOr<double> taken = 0;
  if (refused.ok()) {
    step();
    taken = turn->End();
    next_step_ = options_.steady_now() + absl::Seconds(kUsersShare * taken.value_or(0));
  } else {
    taken = refused;
  }
  absl::MutexLock lock(&mutex_);
  turn_ = nullptr;
  if (!stopped_.ok()) return stopped_;
  return taken;
}

}  // namespace kiln::tuner
