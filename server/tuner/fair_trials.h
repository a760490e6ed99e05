// Trials whose steps wait for their turns of the device's fair queue.
#ifndef KILN_SERVER_TUNER_FAIR_TRIALS_H_
#define KILN_SERVER_TUNER_FAIR_TRIALS_H_

#include <functional>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/fairness/dispatcher.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

// Not thread-safe, except Stop, Pause and Resume. A step is one Run, or as many runs of a Time as
// fit into `step_seconds`, and has one turn: nothing else is on the device meanwhile, and other
// users' work comes between two steps. A run that takes longer than a step is a step, because it
// cannot be divided. Inputs are prepared before the turn, and what a step that has to be repeated
// needs (ABORTED) is loaded before its next turn.
//
// The turns are those of an internal user of the lowest weight and priority. They are charged with
// all the time that they kept the device from others.
class FairTrials : public TrialRunner {
 public:
  struct Options {
    // 0: an eighth of the queue's slice.
    double step_seconds = 0;
    // A step begins when no user has had work on the device for this long, or else when
    // kUsersShare times as long has passed since the last step as that took. So a user who waits
    // for each of many short runs seldom finds a step before one of them. 0: it begins when the
    // queue lets it.
    double quiet_seconds = 0;
    std::function<absl::Time()> steady_now;
    std::string label;  // in the log
  };

  static constexpr double kUsersShare = 64;

  // The dispatcher must outlive this.
  FairTrials(std::unique_ptr<TrialRunner> runner, fairness::Dispatcher& dispatcher,
             Options options);
  ~FairTrials() override;

  absl::Status Prepare(const Inputs& inputs) override { return runner_->Prepare(inputs); }
  // A step that waits leaves the queue, and one that has its turn gives it up at once. Steps wait
  // for Resume, and are then repeated: callers notice only that they take longer.
  void Pause() override ABSL_LOCKS_EXCLUDED(mutex_);
  void Resume() override ABSL_LOCKS_EXCLUDED(mutex_);
  void SetOnYield(std::function<void()> on_yield) override ABSL_LOCKS_EXCLUDED(mutex_);
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override;
  absl::StatusOr<std::unique_ptr<Trial>> LoadSteps(absl::Span<const TrialStep> steps) override;
  // A step that waits fails at once. One that has its turn gives it up at once, and ends as soon as
  // the runner's Stop ends it.
  void Stop(const absl::Status& why) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class FairTrial;
  class Turn;

  absl::StatusOr<std::unique_ptr<Trial>> LoadBy(
      absl::FunctionRef<absl::StatusOr<std::unique_ptr<Trial>>()> load);
  // Waits while it is paused. Returns the number of pauses until now, or why nothing runs any more.
  absl::StatusOr<int64_t> AwaitResume() ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t pauses() ABSL_LOCKS_EXCLUDED(mutex_);
  // Calls `attempt` until it returns something else than ABORTED. Between calls it waits while it
  // is paused. UNAVAILABLE if several calls are aborted without a pause.
  absl::Status Repeat(absl::FunctionRef<absl::Status()> attempt) ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until a step may begin. Returns why none does.
  absl::Status AwaitUsers() ABSL_LOCKS_EXCLUDED(mutex_);
  // Why nothing runs now: it is stopped, or paused.
  absl::Status HaltedLocked() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Runs `step` in a turn, and returns how long it took, or why it did not run or was stopped.
  absl::StatusOr<double> InTurn(double predicted_seconds, absl::FunctionRef<void()> step)
      ABSL_LOCKS_EXCLUDED(mutex_);

  const std::unique_ptr<TrialRunner> runner_;
  fairness::Dispatcher& dispatcher_;
  const Options options_;
  const double step_seconds_;
  const fairness::FairQueue::FlowId flow_;
  // A step may begin then although users are not quiet.
  absl::Time next_step_ = absl::InfinitePast();
  absl::Mutex mutex_;
  std::shared_ptr<Turn> turn_ ABSL_GUARDED_BY(mutex_);  // of the step that waits or runs
  absl::Status stopped_ ABSL_GUARDED_BY(mutex_);
  bool is_paused_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t pauses_ ABSL_GUARDED_BY(mutex_) = 0;  // that have begun
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_FAIR_TRIALS_H_
