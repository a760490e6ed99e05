// Steps of trials among other users' work, with a clock that only they advance.
#include "server/tuner/fair_trials.h"

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::tuner {
namespace {

using fairness::Dispatcher;
using kernel::Sample;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

constexpr double kAmpleSeconds = 1000;

// Records in order what happens on the device. Thread-safe.
class Events {
 public:
  void Add(const std::string& event) {
    absl::MutexLock lock(&mutex_);
    events_.push_back(event);
  }
  std::vector<std::string> Take() {
    absl::MutexLock lock(&mutex_);
    return std::exchange(events_, {});
  }
  void Advance(double seconds) {
    absl::MutexLock lock(&mutex_);
    now_ += absl::Seconds(seconds);
  }
  absl::Time now() const {
    absl::MutexLock lock(&mutex_);
    return now_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> events_ ABSL_GUARDED_BY(mutex_);
  absl::Time now_ ABSL_GUARDED_BY(mutex_) = absl::UnixEpoch();
};

// A user's work of two seconds, so that two do not fit onto the device together. It ends at once,
// or when the test says so.
class UsersWork : public fairness::Work {
 public:
  UsersWork(Events& events, Dispatcher& dispatcher, bool ends)
      : events_(events), dispatcher_(dispatcher), ends_(ends) {}
  double predicted_seconds() const override { return 2; }
  std::string label() const override { return "user"; }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration waited) override {
    events_.Add("user");
    ticket_ = ticket;
    if (ends_) Finish();
    return Handed::kAll;
  }
  void Fail(const absl::Status& status) override { ADD_FAILURE() << status; }
  void Finish() { dispatcher_.Finished(ticket_, 2); }

 private:
  Events& events_;
  Dispatcher& dispatcher_;
  const bool ends_;
  int64_t ticket_ = 0;
};

// Each run takes the same time.
class ScriptedRunner : public TrialRunner {
 public:
  ScriptedRunner(Events& events, double seconds) : events_(events), seconds_(seconds) {}

  absl::Status Prepare(const Inputs& inputs) override {
    events_.Add(absl::StrCat("prepare ", std::string(kernel::NameOf(inputs.sample))));
    return absl::OkStatus();
  }
  void Stop(const absl::Status& why) override {
    if (!stop_.HasBeenNotified()) stop_.Notify();
  }
  void Pause() override { events_.Add("pause"); }
  void Resume() override { events_.Add("resume"); }
  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override {
    if (image.name == "bad") return absl::InvalidArgumentError("bad image");
    if (image.name == "lost") return absl::AbortedError("its process was lost");
    return std::make_unique<ScriptedTrial>(*this);
  }

  // Called in each step.
  std::function<void()> in_step = [] {};
  int aborted = 0;  // steps that will fail with ABORTED
  absl::Notification& stop() { return stop_; }

 private:
  class ScriptedTrial : public Trial {
   public:
    explicit ScriptedTrial(ScriptedRunner& runner) : runner_(runner) {}
    absl::Status Load() override {
      if (runner_.loads_) runner_.events_.Add("load");
      return absl::OkStatus();
    }
    absl::StatusOr<double> Time(int times, double seconds_max) override {
      runner_.events_.Add(absl::StrCat("time ", times));
      runner_.in_step();
      runner_.events_.Advance(runner_.seconds_ * times);
      if (runner_.aborted > 0) {
        --runner_.aborted;
        runner_.loads_ = true;
        return absl::AbortedError("its process was lost");
      }
      return runner_.seconds_;
    }
    absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) override {
      runner_.events_.Add("run");
      runner_.in_step();
      runner_.events_.Advance(runner_.seconds_);
      if (runner_.seconds_ > seconds_max) return absl::DeadlineExceededError("too long");
      return Outputs{{1, {'x'}}};
    }

   private:
    ScriptedRunner& runner_;
  };

  Events& events_;
  const double seconds_;
  absl::Notification stop_;
  bool loads_ = false;  // a process was lost, so that loading is an event
};

class FairTrialsTest : public ::testing::Test {
 protected:
  void SetUp() override { Start(/*seconds=*/0.5); }

  void Start(double seconds, double step_seconds = 2, double quiet_seconds = 0) {
    auto runner = std::make_unique<ScriptedRunner>(events_, seconds);
    runner_ = runner.get();
    trials_ = std::make_unique<FairTrials>(
        std::move(runner), dispatcher_,
        FairTrials::Options{.step_seconds = step_seconds,
                            .quiet_seconds = quiet_seconds,
                            .steady_now = [this] { return events_.now(); },
                            .label = "matmul"});
    trial_ = *trials_->Load({});
  }

  std::shared_ptr<UsersWork> Enqueue(bool ends) {
    auto work = std::make_shared<UsersWork>(events_, dispatcher_, ends);
    dispatcher_.Enqueue(ann_, work);
    return work;
  }
  bool OneWaits() {
    return testing::Eventually([this] { return dispatcher_.queued() == 1; });
  }
  bool IsIdle() { return dispatcher_.WaitIdle(absl::ZeroDuration()); }

  Events events_;
  // A slice of 4 s.
  Dispatcher dispatcher_{"cpu:0", [this] { return events_.now(); },
                         fairness::QueueLimits{.slice_seconds = 4}};
  const fairness::FairQueue::FlowId ann_ = dispatcher_.AddFlow("ann", 100);
  std::unique_ptr<FairTrials> trials_;
  ScriptedRunner* runner_ = nullptr;  // owned by trials_
  std::unique_ptr<Trial> trial_;
};

TEST_F(FairTrialsTest, DividesATimeIntoSteps) {
  const auto seconds = trial_->Time(9, kAmpleSeconds);
  ASSERT_TRUE(seconds.ok()) << seconds.status();
  EXPECT_EQ(*seconds, 0.5);
  // One, since nothing is known yet; then as many as fit.
  EXPECT_THAT(events_.Take(), ElementsAre("prepare random", "time 1", "time 4", "time 4"));
  EXPECT_DOUBLE_EQ(dispatcher_.device_seconds(), 4.5);
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, AStepIsAnEighthOfASliceUnlessItIsSet) {
  Start(/*seconds=*/0.25, /*step_seconds=*/0);
  ASSERT_TRUE(trial_->Time(5, kAmpleSeconds).ok());
  EXPECT_THAT(events_.Take(), ElementsAre("prepare random", "time 1", "time 2", "time 2"));
}

TEST_F(FairTrialsTest, ALongRunIsOneStep) {
  Start(/*seconds=*/60);
  ASSERT_TRUE(trial_->Time(2, kAmpleSeconds).ok());
  EXPECT_THAT(events_.Take(), ElementsAre("prepare random", "time 1", "time 1"));
  EXPECT_DOUBLE_EQ(dispatcher_.device_seconds(), 120);
}

TEST_F(FairTrialsTest, StepsShareTheTimeLimit) {
  EXPECT_TRUE(absl::IsDeadlineExceeded(trial_->Time(9, 2.5).status()));
  EXPECT_THAT(events_.Take(), ElementsAre("prepare random", "time 1", "time 4"));
}

TEST_F(FairTrialsTest, RunsInATurn) {
  const auto outputs = trial_->Run({Sample::kOdd}, kAmpleSeconds);
  ASSERT_TRUE(outputs.ok()) << outputs.status();
  EXPECT_THAT(outputs->at(1), ElementsAre('x'));
  EXPECT_TRUE(absl::IsDeadlineExceeded(trial_->Run({Sample::kOdd}, 0).status()));
  EXPECT_DOUBLE_EQ(dispatcher_.device_seconds(), 1);
  drivers::KernelImage bad;
  bad.name = "bad";
  EXPECT_TRUE(absl::IsInvalidArgument(trials_->Load(bad).status()));
}

TEST_F(FairTrialsTest, IsAloneOnTheDevice) {
  const auto first = Enqueue(/*ends=*/false);
  std::shared_ptr<UsersWork> second;
  std::vector<std::string> in_step;
  runner_->in_step = [&] {
    second = Enqueue(/*ends=*/true);
    in_step = events_.Take();
  };
  std::thread trial([&] { EXPECT_TRUE(trial_->Run({Sample::kEqual}, kAmpleSeconds).ok()); });
  ASSERT_TRUE(OneWaits());
  // The inputs are prepared without a turn.
  EXPECT_THAT(events_.Take(), ElementsAre("user", "prepare equal"));
  first->Finish();
  trial.join();
  EXPECT_THAT(in_step, ElementsAre("run"));
  EXPECT_THAT(events_.Take(), ElementsAre("user"));
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, UsersGetSixteenTimesAsMuch) {
  Start(/*seconds=*/3);
  ASSERT_TRUE(trial_->Time(1, kAmpleSeconds).ok());
  const auto first = Enqueue(/*ends=*/false);
  std::thread trial([&] { EXPECT_TRUE(trial_->Time(1, kAmpleSeconds).ok()); });
  ASSERT_TRUE(OneWaits());
  for (int i = 0; i < 100; ++i) Enqueue(/*ends=*/true);
  events_.Take();
  first->Finish();
  trial.join();
  const std::vector<std::string> events = events_.Take();
  ASSERT_THAT(events, SizeIs(101));
  // The step before took 3 s, so users get 48 s.
  const auto before = std::find(events.begin(), events.end(), "time 1") - events.begin();
  EXPECT_GE(before, 21);
  EXPECT_LE(before, 25);
}

// Runs a step in a thread, and returns when its inputs are prepared.
class StepInThread {
 public:
  StepInThread(Trial& trial, Events& events)
      : thread_([&trial] { EXPECT_TRUE(trial.Run({Sample::kOdd}, kAmpleSeconds).ok()); }) {
    EXPECT_TRUE(testing::Eventually([&] {
      for (const std::string& event : events.Take()) {
        if (event == "prepare odd") return true;
      }
      return false;
    }));
  }
  void Join() { thread_.join(); }

 private:
  std::thread thread_;
};

TEST_F(FairTrialsTest, AStepWaitsUntilUsersAreQuiet) {
  Start(/*seconds=*/0.5, /*step_seconds=*/2, /*quiet_seconds=*/10);
  // The first one waits for nothing.
  ASSERT_TRUE(trial_->Run({Sample::kOdd}, kAmpleSeconds).ok());
  Enqueue(/*ends=*/true);
  events_.Take();
  StepInThread step(*trial_, events_);
  events_.Advance(5);
  Enqueue(/*ends=*/true);
  events_.Add("quiet");
  events_.Advance(10);
  step.Join();
  EXPECT_THAT(events_.Take(), ElementsAre("user", "quiet", "run"));
}

TEST_F(FairTrialsTest, UsersWhoAreNeverQuietGetNearlyAll) {
  Start(/*seconds=*/0.5, /*step_seconds=*/2, /*quiet_seconds=*/10);
  ASSERT_TRUE(trial_->Run({Sample::kOdd}, kAmpleSeconds).ok());
  Enqueue(/*ends=*/true);
  events_.Take();
  StepInThread step(*trial_, events_);
  constexpr double kWait = 0.5 * FairTrials::kUsersShare;
  for (double waited = 4; waited < kWait; waited += 4) {
    events_.Advance(4);
    Enqueue(/*ends=*/true);
  }
  events_.Take();
  events_.Add("the step's turn");
  events_.Advance(4);
  step.Join();
  EXPECT_THAT(events_.Take(), ElementsAre("the step's turn", "run"));
}

TEST_F(FairTrialsTest, AStepThatWaitsForUsersIsStoppedAndPaused) {
  Start(/*seconds=*/0.5, /*step_seconds=*/2, /*quiet_seconds=*/10);
  ASSERT_TRUE(trial_->Run({Sample::kOdd}, kAmpleSeconds).ok());
  Enqueue(/*ends=*/true);
  events_.Take();
  {
    StepInThread step(*trial_, events_);
    trials_->Pause();
    events_.Advance(10);
    trials_->Resume();
    step.Join();
  }
  Enqueue(/*ends=*/true);
  std::thread stopped([&] {
    EXPECT_EQ(trial_->Run({Sample::kOdd}, kAmpleSeconds).status(), absl::CancelledError("enough"));
  });
  trials_->Stop(absl::CancelledError("enough"));
  stopped.join();
}

TEST_F(FairTrialsTest, StopEndsAStepThatWaits) {
  const auto users = Enqueue(/*ends=*/false);
  std::thread trial([&] {
    EXPECT_EQ(trial_->Run({Sample::kOdd}, kAmpleSeconds).status(), absl::CancelledError("enough"));
  });
  ASSERT_TRUE(OneWaits());
  trials_->Stop(absl::CancelledError("enough"));
  trial.join();
  EXPECT_EQ(dispatcher_.queued(), 0);
  EXPECT_EQ(trial_->Time(1, kAmpleSeconds).status(), absl::CancelledError("enough"));
  EXPECT_THAT(events_.Take(), ElementsAre("user", "prepare odd"));
  users->Finish();
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, NothingWaitsForAStepThatIsStopped) {
  absl::Notification begun, let_go;
  runner_->in_step = [&] {
    begun.Notify();
    let_go.WaitForNotification();
  };
  std::thread trial([&] {
    EXPECT_EQ(trial_->Run({Sample::kOdd}, kAmpleSeconds).status(), absl::CancelledError("enough"));
  });
  begun.WaitForNotification();
  EXPECT_FALSE(IsIdle());
  trials_->Stop(absl::CancelledError("enough"));
  EXPECT_TRUE(runner_->stop().HasBeenNotified());
  EXPECT_TRUE(IsIdle());
  let_go.Notify();
  trial.join();
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, AnAbortedStepIsLoadedWithoutATurnAndRepeated) {
  runner_->aborted = 2;
  const auto first = Enqueue(/*ends=*/false);
  std::thread trial([&] { EXPECT_TRUE(trial_->Time(3, kAmpleSeconds).ok()); });
  ASSERT_TRUE(OneWaits());
  std::shared_ptr<UsersWork> second;
  runner_->in_step = [&] { second = Enqueue(/*ends=*/false), runner_->in_step = [] {}; };
  first->Finish();
  // The next user's work has the device, while the candidate is loaded again and waits.
  ASSERT_TRUE(OneWaits());
  EXPECT_THAT(events_.Take(), UnorderedElementsAre("user", "prepare random", "time 1", "user",
                                                   "load", "prepare random"));
  second->Finish();
  trial.join();
  EXPECT_THAT(events_.Take(), ElementsAre("time 1", "load", "prepare random", "time 1", "time 2"));
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, WhatIsAbortedAgainAndAgainHasFailed) {
  runner_->aborted = 100;
  EXPECT_EQ(trial_->Time(1, kAmpleSeconds).status(),
            absl::UnavailableError("its process was lost"));
  EXPECT_GT(runner_->aborted, 50);
  drivers::KernelImage lost;
  lost.name = "lost";
  EXPECT_TRUE(absl::IsUnavailable(trials_->Load(lost).status()));
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, APausedStepGivesItsTurnUpAndIsRepeated) {
  absl::Notification begun, let_go;
  runner_->in_step = [&] {
    begun.Notify();
    let_go.WaitForNotification();
    runner_->in_step = [] {};
  };
  std::thread trial([&] { EXPECT_TRUE(trial_->Run({Sample::kOdd}, kAmpleSeconds).ok()); });
  begun.WaitForNotification();
  EXPECT_FALSE(IsIdle());
  trials_->Pause();
  EXPECT_TRUE(IsIdle());
  Enqueue(/*ends=*/true);
  let_go.Notify();
  EXPECT_THAT(events_.Take(), ElementsAre("prepare odd", "run", "pause", "user"));
  trials_->Resume();
  trial.join();
  EXPECT_THAT(events_.Take(), ElementsAre("resume", "prepare odd", "run"));
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, APausedStepLeavesTheQueue) {
  const auto users = Enqueue(/*ends=*/false);
  std::thread trial([&] { EXPECT_TRUE(trial_->Run({Sample::kOdd}, kAmpleSeconds).ok()); });
  ASSERT_TRUE(OneWaits());
  trials_->Pause();
  EXPECT_EQ(dispatcher_.queued(), 0);
  users->Finish();
  EXPECT_TRUE(IsIdle());
  EXPECT_THAT(events_.Take(), ElementsAre("user", "prepare odd", "pause"));
  trials_->Resume();
  trial.join();
  EXPECT_THAT(events_.Take(), ElementsAre("resume", "prepare odd", "run"));
}

TEST_F(FairTrialsTest, WhatIsPausedCanBeStopped) {
  trials_->Pause();
  std::thread trial(
      [&] { EXPECT_EQ(trial_->Time(1, kAmpleSeconds).status(), absl::CancelledError("enough")); });
  trials_->Stop(absl::CancelledError("enough"));
  trial.join();
  EXPECT_THAT(events_.Take(), ElementsAre("pause"));
}

TEST_F(FairTrialsTest, StepsAreNoUsersWork) {
  runner_->in_step = [&] { EXPECT_FALSE(dispatcher_.users_work().is_there); };
  EXPECT_TRUE(trial_->Time(1, kAmpleSeconds).ok());
  EXPECT_EQ(dispatcher_.users_work().last, absl::UnixEpoch());
}

TEST_F(FairTrialsTest, ADeviceThatFailsStopsTheStep) {
  runner_->in_step = [&] {
    dispatcher_.StopInFlight(absl::UnavailableError("lost"));
    EXPECT_TRUE(runner_->stop().HasBeenNotified());
  };
  EXPECT_EQ(trial_->Run({Sample::kOdd}, kAmpleSeconds).status(), absl::UnavailableError("lost"));
  EXPECT_TRUE(IsIdle());
}

TEST_F(FairTrialsTest, AQueueThatStopsRefusesSteps) {
  const auto users = Enqueue(/*ends=*/false);
  std::thread trial([&] {
    EXPECT_EQ(trial_->Run({Sample::kOdd}, kAmpleSeconds).status(),
              absl::UnavailableError("closing"));
  });
  ASSERT_TRUE(OneWaits());
  dispatcher_.Stop(absl::UnavailableError("closing"));
  trial.join();
  EXPECT_EQ(trial_->Time(1, kAmpleSeconds).status(), absl::UnavailableError("closing"));
  users->Finish();
  EXPECT_TRUE(IsIdle());
}

}  // namespace
}  // namespace kiln::tuner
