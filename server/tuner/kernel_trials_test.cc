// The measurer with a runner that knows the time and the results of each machine code.
#include "server/tuner/kernel_trials.h"

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

using kernel::Sample;
using search::Candidate;
using search::Measured;
using search::Timing;
using ::testing::HasSubstr;

constexpr char kMatmul[] = R"(buffer b0 float32[262144] read
buffer b1 float32[262144] read
buffer b2 float32[262144] write
stage r0:512 r1:512 reduce r2:512
  b2[r0*512 + r1] = sum(b0[r0*512 + r2]*b1[r2*512 + r1])
)";
constexpr char kSmall[] = R"(buffer b0 float32[8] read
buffer b1 float32[8] write
stage r0:8
  b1[r0] = b0[r0] + b0[r0]
)";

// How a machine code behaves.
struct Behaviour {
  double seconds = 1e-3;
  absl::Status load = absl::OkStatus();
  absl::Status run = absl::OkStatus();
  float result = 1;                               // of all elements
  float spread = 0;                               // how much more it is on perturbed inputs
  std::optional<Sample> wrong_on = std::nullopt;  // results are others on these inputs
};

Outputs ResultsOf(const Behaviour& behaviour, const Inputs& inputs) {
  const float right = behaviour.result + (inputs.perturbation > 0 ? behaviour.spread : 0);
  const bool is_wrong = behaviour.wrong_on == inputs.sample;
  const std::vector<float> values(8, is_wrong ? behaviour.result + 1 : right);
  std::vector<char> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {{1, bytes}};
}

class FakeRunner : public TrialRunner {
 public:
  // By the image's code; others are like `usual`.
  std::map<std::string, Behaviour> behaviours;
  Behaviour usual;
  // The machine takes this many times as long from now on.
  double slowness = 1;
  std::function<double()> disturbance = [] { return 1.0; };
  std::map<std::string, int> loads, turns;

  absl::StatusOr<std::unique_ptr<Trial>> Load(const drivers::KernelImage& image) override {
    ++loads[image.code];
    const auto found = behaviours.find(image.code);
    const Behaviour& behaviour = found == behaviours.end() ? usual : found->second;
    if (!behaviour.load.ok()) return behaviour.load;
    return std::make_unique<FakeTrial>(*this, image.code, behaviour);
  }

 private:
  class FakeTrial : public Trial {
   public:
    FakeTrial(FakeRunner& runner, std::string code, Behaviour behaviour)
        : runner_(runner), code_(std::move(code)), behaviour_(std::move(behaviour)) {}
    absl::StatusOr<double> Time(int times, double seconds_max) override {
      EXPECT_GT(times, 0);
      ++runner_.turns[code_];
      const double seconds = behaviour_.seconds * runner_.slowness * runner_.disturbance();
      if (seconds * times > seconds_max) return absl::DeadlineExceededError("it ran longer");
      return seconds;
    }
    absl::StatusOr<Outputs> Run(const Inputs& inputs, double seconds_max) override {
      if (!behaviour_.run.ok()) return behaviour_.run;
      return ResultsOf(behaviour_, inputs);
    }

   private:
    FakeRunner& runner_;
    const std::string code_;
    const Behaviour behaviour_;
  };
};

class KernelTrialsTest : public ::testing::Test {
 protected:
  KernelTrialsTest() { UseKernel(kSmall); }

  void UseKernel(const char* text, TrialOptions options = {.compile_threads = 2}) {
    kernel_ = *kernel::ParseKernel(text, context_);
    auto compile = [this](const workers::KernelJob& job) { return Compile(job); };
    trials_ = std::make_unique<KernelTrials>(kernel_, target_, compile, runner_, options);
  }

  // The code is the schedule's text, or another that the test gives it.
  absl::StatusOr<drivers::KernelImage> Compile(const workers::KernelJob& job)
      ABSL_LOCKS_EXCLUDED(mutex_) {
    EXPECT_EQ(job.kernel, kernel::Print(kernel_));
    absl::MutexLock lock(&mutex_);
    ++compiled_;
    if (refused_.contains(job.schedule)) return absl::InternalError("LLVM cannot select it");
    drivers::KernelImage image;
    image.code = job.schedule;
    if (codes_.contains(job.schedule)) image.code = codes_[job.schedule];
    return image;
  }

  // `number`: a schedule of its own.
  static Candidate Of(int number) {
    const auto schedule = schedule::Parse(SchedulesText(number));
    EXPECT_TRUE(schedule.ok()) << schedule.status();
    return {{}, *schedule};
  }
  static std::string SchedulesText(int number) {
    return "split 0 " + std::to_string(number + 2) + "\n";
  }

  // Measures candidate 0 as the heuristic's.
  Measured MeasureHeuristic() {
    const Candidate heuristic = Of(0);
    const auto timing = trials_->Measure(nullptr, {&heuristic, 1}).at(0);
    EXPECT_TRUE(timing.ok()) << timing.status();
    return {heuristic, *timing};
  }

  ir::Context context_;
  kernel::Kernel kernel_;
  drivers::Target target_;
  FakeRunner runner_;
  std::unique_ptr<KernelTrials> trials_;
  absl::Mutex mutex_;
  std::set<std::string> refused_;
  std::map<std::string, std::string> codes_;
  int compiled_ ABSL_GUARDED_BY(mutex_) = 0;
};

TEST_F(KernelTrialsTest, TimesAreInProportionToTheIncumbents) {
  runner_.behaviours[SchedulesText(1)].seconds = 0.5e-3;
  runner_.behaviours[SchedulesText(2)].seconds = 1.1e-3;
  const Measured heuristic = MeasureHeuristic();
  EXPECT_DOUBLE_EQ(heuristic.timing.seconds, 1e-3);
  // Without turns the faster one would look as slow as the heuristic's.
  runner_.slowness = 2;
  const auto timings = trials_->Measure(&heuristic, {Of(1), Of(2)});
  ASSERT_TRUE(timings[0].ok() && timings[1].ok());
  EXPECT_NEAR(timings[0]->seconds, 0.5e-3, 1e-9);
  EXPECT_NEAR(timings[1]->seconds, 1.1e-3, 1e-9);
  EXPECT_LT(timings[0]->noise, 1e-6);
}

TEST_F(KernelTrialsTest, ADisturbedTurnChangesNothing) {
  runner_.behaviours[SchedulesText(1)].seconds = 0.9e-3;
  const Measured heuristic = MeasureHeuristic();
  int turn = 0;
  runner_.disturbance = [&turn] { return ++turn == 4 ? 8.0 : 1.0; };
  const Candidate candidate = Of(1);
  const auto timing = trials_->Measure(&heuristic, {&candidate, 1}).at(0);
  ASSERT_TRUE(timing.ok());
  EXPECT_NEAR(timing->seconds, 0.9e-3, 1e-9);
}

TEST_F(KernelTrialsTest, IdenticalMachineCodeIsTimedOnce) {
  codes_[SchedulesText(1)] = codes_[SchedulesText(2)] = "same";
  codes_[SchedulesText(3)] = SchedulesText(0);  // the heuristic's
  const Measured heuristic = MeasureHeuristic();
  const auto timings = trials_->Measure(&heuristic, {Of(1), Of(2), Of(3)});
  EXPECT_EQ(runner_.loads["same"], 1);
  EXPECT_EQ(trials_->repeated(), 2);
  ASSERT_TRUE(timings[1].ok() && timings[2].ok());
  EXPECT_EQ(timings[0]->seconds, timings[1]->seconds);
  EXPECT_EQ(timings[2]->seconds, heuristic.timing.seconds);
}

TEST_F(KernelTrialsTest, ReportsRefusals) {
  refused_.insert(SchedulesText(1));
  runner_.behaviours[SchedulesText(2)].load = absl::ResourceExhaustedError("no memory for code");
  const Measured heuristic = MeasureHeuristic();
  const auto timings = trials_->Measure(&heuristic, {Of(1), Of(2), Of(3)});
  EXPECT_EQ(timings[0].status(), absl::InternalError("LLVM cannot select it"));
  EXPECT_EQ(timings[1].status(), absl::ResourceExhaustedError("no memory for code"));
  EXPECT_TRUE(timings[2].ok());
}

TEST_F(KernelTrialsTest, TimesOfNothingAreRefused) {
  runner_.behaviours[SchedulesText(1)].seconds = 0;
  const Measured heuristic = MeasureHeuristic();
  const Candidate candidate = Of(1);
  EXPECT_EQ(trials_->Measure(&heuristic, {&candidate, 1}).at(0).status(),
            absl::UnavailableError("the device has measured no time"));
}

// Later it may be: a process could not be started, for example.
TEST_F(KernelTrialsTest, WhatWasUnavailableIsTriedAgain) {
  runner_.behaviours[SchedulesText(1)].load = absl::UnavailableError("no process");
  const Measured heuristic = MeasureHeuristic();
  const Candidate candidate = Of(1);
  EXPECT_FALSE(trials_->Measure(&heuristic, {&candidate, 1}).at(0).ok());
  runner_.behaviours[SchedulesText(1)].load = absl::OkStatus();
  EXPECT_TRUE(trials_->Measure(&heuristic, {&candidate, 1}).at(0).ok());
}

TEST_F(KernelTrialsTest, SlowCandidatesAreGivenUpEarly) {
  UseKernel(kSmall, {.rounds = 9});
  runner_.behaviours[SchedulesText(1)].seconds = 100e-3;
  runner_.behaviours[SchedulesText(2)].seconds = 1.5e-3;
  runner_.behaviours[SchedulesText(3)].seconds = 1.1e-3;
  runner_.behaviours[SchedulesText(4)].seconds = 1e6;
  const Measured heuristic = MeasureHeuristic();
  const auto timings = trials_->Measure(&heuristic, {Of(1), Of(2), Of(3), Of(4)});
  EXPECT_EQ(runner_.turns[SchedulesText(1)], 2);  // no turns
  EXPECT_EQ(timings[0]->noise, 1);
  EXPECT_EQ(runner_.turns[SchedulesText(2)], 1 + 2);
  EXPECT_NEAR(timings[1]->seconds, 1.5e-3, 1e-9);
  EXPECT_EQ(runner_.turns[SchedulesText(3)], 1 + 9);
  EXPECT_EQ(timings[3].status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST_F(KernelTrialsTest, ConfirmingTimesAnewAndLonger) {
  UseKernel(kSmall, {.rounds = 3, .confirming_rounds = 11});
  runner_.behaviours[SchedulesText(1)].seconds = 0.5e-3;
  const Measured heuristic = MeasureHeuristic();
  const Candidate candidate = Of(1);
  ASSERT_TRUE(trials_->Measure(&heuristic, {&candidate, 1}).at(0).ok());
  runner_.turns.clear();
  runner_.behaviours[SchedulesText(1)].seconds = 0.8e-3;  // the first timing was luck
  const auto timing = trials_->Confirm(heuristic, candidate);
  ASSERT_TRUE(timing.ok()) << timing.status();
  EXPECT_NEAR(timing->seconds, 0.8e-3, 1e-9);
  EXPECT_EQ(runner_.turns[SchedulesText(1)], 1 + 11);
}

TEST_F(KernelTrialsTest, WrongResultsAreNotConfirmed) {
  const Measured heuristic = MeasureHeuristic();
  runner_.behaviours[SchedulesText(1)].result = 1.5;
  EXPECT_EQ(trials_->Confirm(heuristic, Of(1)).status(),
            absl::DataLossError("element 0 of buffer b1 is 1.5 instead of 1, on random inputs"));
  for (const Sample sample : kernel::Samples()) {
    runner_.behaviours[SchedulesText(2)].wrong_on = sample;
    EXPECT_TRUE(absl::IsDataLoss(trials_->Confirm(heuristic, Of(2)).status()));
  }
  runner_.behaviours[SchedulesText(2)].wrong_on.reset();
  EXPECT_TRUE(trials_->Confirm(heuristic, Of(2)).ok());
}

// As of a kernel that enlarges small differences.
TEST_F(KernelTrialsTest, ResultsMayDifferAsThoseOfPerturbedInputsDo) {
  runner_.behaviours[SchedulesText(0)].spread = 0.1F;
  const Measured heuristic = MeasureHeuristic();
  runner_.behaviours[SchedulesText(1)].result = 1.3F;
  EXPECT_TRUE(trials_->Confirm(heuristic, Of(1)).ok());
  runner_.behaviours[SchedulesText(1)].result = 1.5F;
  EXPECT_TRUE(absl::IsDataLoss(trials_->Confirm(heuristic, Of(1)).status()));
}

TEST_F(KernelTrialsTest, WritesOutsideTheOutputsAreNotConfirmed) {
  const Measured heuristic = MeasureHeuristic();
  runner_.behaviours[SchedulesText(1)].run = absl::DataLossError("it writes outside its outputs");
  EXPECT_THAT(trials_->Confirm(heuristic, Of(1)).status().message(),
              HasSubstr("it writes outside its outputs, on random inputs"));
}

TEST_F(KernelTrialsTest, TheHeuristicsScheduleIsComparedWithThePlainOne) {
  runner_.behaviours[""].result = 3;  // the plain schedule has no directives
  const Candidate heuristic = Of(0);
  const auto timing = trials_->Measure(nullptr, {&heuristic, 1}).at(0);
  EXPECT_EQ(timing.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(timing.status().message(), HasSubstr("the heuristic's schedule is wrong: element 0"));

  UseKernel(kSmall, {.plain_points_max = 7});
  EXPECT_TRUE(trials_->Measure(nullptr, {&heuristic, 1}).at(0).ok());
}

// A whole search: the fastest candidates are wrong, hang, or do not compile.
TEST_F(KernelTrialsTest, ASearchChoosesTheFastestRightCandidate) {
  UseKernel(kSmall);
  ir::Context context;
  target_.limits.vector_bytes = 32;
  const auto matmul = *kernel::ParseKernel(kMatmul, context);
  const search::Space space(matmul, target_, search::Machine::kLanes);
  const std::vector<search::Setting> neighbours = space.Neighbours(space.heuristic());
  std::vector<std::string> schedules;
  for (const search::Setting& setting : neighbours) {
    const auto schedule = space.Write(setting);
    if (schedule.ok()) schedules.push_back(schedule::Print(*schedule));
  }
  ASSERT_GE(schedules.size(), 5u);
  runner_.behaviours[schedules[0]] = {.seconds = 0.1e-3, .result = 2};
  runner_.behaviours[schedules[1]] = {.seconds = 0.2e-3,
                                      .run = absl::DataLossError("it writes past a buffer")};
  runner_.behaviours[schedules[2]] = {.seconds = 1e6};
  refused_.insert(schedules[3]);
  runner_.behaviours[schedules[4]] = {.seconds = 0.7e-3};
  const auto result =
      search::FindSetting(space, *trials_, {.width = 2, .now = [] { return absl::UnixEpoch(); }});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(schedule::Print(result->best.candidate.schedule), schedules[4])
      << search::PrintPath(*result);
  EXPECT_NEAR(result->best.timing.seconds, 0.7e-3, 1e-9);
  EXPECT_EQ(result->progress.failed, 4);
}

}  // namespace
}  // namespace kiln::tuner
