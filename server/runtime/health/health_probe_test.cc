#include "server/runtime/health/health_probe.h"

#include <atomic>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/clock/testing/clocks.h"
#include "server/errors/errors.h"
#include "server/testing/fake_compiler.h"
#include "server/testing/fake_device.h"
#include "tests/eventually.h"

namespace kiln::runtime {
namespace {

using ::testing::HasSubstr;

// Ends as soon as it is submitted.
class Instant : public fairness::Work {
 public:
  explicit Instant(fairness::Dispatcher& dispatcher) : dispatcher_(dispatcher) {}
  double predicted_seconds() const override { return 1e-6; }
  absl::StatusOr<Handed> Submit(int64_t ticket, absl::Duration) override {
    dispatcher_.Finished(ticket, 0.001);
    return Handed::kAll;
  }
  std::string label() const override { return "instant"; }
  void Fail(const absl::Status&) override {}

 private:
  fairness::Dispatcher& dispatcher_;
};

class HealthProbeTest : public ::testing::Test {
 protected:
  HealthProbeTest() {
    ProgramCache::Options options;
    options.compile = kiln::testing::FakeCompile;
    options.metrics = &metrics_;
    options.clock = kiln::testing::ClockOf([this] { return now_; });
    programs_ = std::make_unique<ProgramCache>(std::move(options));
    probe_ = std::make_shared<HealthProbe>(HealthProbe::Options{.device = &device_,
                                                                .programs = programs_.get(),
                                                                .interval = absl::Seconds(10),
                                                                .longest_run = absl::Minutes(10)});
    raw_->SetKernel("add", [this](const kiln::testing::FakeArguments& arguments) {
      ++runs_;
      const auto* x = reinterpret_cast<const float*>(arguments.data[0]);
      const auto* y = reinterpret_cast<const float*>(arguments.data[1]);
      auto* out = reinterpret_cast<float*>(arguments.data[2]);
      const auto count = static_cast<size_t>(arguments.bytes[2]) / sizeof(float);
      for (size_t i = 0; i < count && !writes_nothing_; ++i) out[i] = x[i] + y[i];
      if (is_wrong_) out[count - 1] += 1;
      return absl::OkStatus();
    });
  }
  // Runs a probe to its end.
  void TickAndWait() {
    const int64_t before = runs_;
    probe_->Tick(now_);
    // The first one is compiled before it is queued.
    ASSERT_TRUE(kiln::testing::Eventually([&] { return runs_ != before; }));
    ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
  }

  metrics::Metrics metrics_{"test"};
  absl::Time now_ = absl::UnixEpoch();
  kiln::testing::FakeDevice* raw_ = new kiln::testing::FakeDevice("cpu:0", 1 << 20);
  ManagedDevice device_{std::unique_ptr<drivers::Device>(raw_), 0, metrics_.ForDevice("cpu:0"),
                        SystemClock()};
  std::unique_ptr<ProgramCache> programs_;
  std::shared_ptr<HealthProbe> probe_;
  std::atomic<int64_t> runs_{0};
  std::atomic<bool> is_wrong_{false}, writes_nothing_{false};
};

TEST_F(HealthProbeTest, ComesOnceInAnInterval) {
  TickAndWait();
  EXPECT_EQ(device_.health(), Health::kHealthy);
  probe_->Tick(now_ += absl::Seconds(9));
  ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(runs_, 1);
  now_ += absl::Seconds(1);
  TickAndWait();
  EXPECT_EQ(runs_, 2);
  EXPECT_EQ(device_.health(), Health::kHealthy);
}

TEST_F(HealthProbeTest, ADeviceThatComputesWrongNumbersIsOut) {
  TickAndWait();
  is_wrong_ = true;
  now_ += absl::Seconds(10);
  TickAndWait();
  EXPECT_EQ(device_.health(), Health::kFailed);
  EXPECT_THAT(device_.health_message(), HasSubstr("wrong numbers (a sum that must be "));
  // Work that has begun fails there as well, and permanently.
  EXPECT_EQ(errors::Reason(device_.CheckUsable(false)), "DEVICE_FAILED");
  is_wrong_ = false;
  EXPECT_FALSE(device_.TryRevive());
  EXPECT_EQ(device_.health(), Health::kFailed);
}

// Data that an earlier probe left in memory does not pass.
TEST_F(HealthProbeTest, ADeviceThatComputesNothingIsOut) {
  TickAndWait();
  writes_nothing_ = true;
  now_ += absl::Seconds(10);
  TickAndWait();
  EXPECT_EQ(device_.health(), Health::kFailed);
}

TEST_F(HealthProbeTest, ADeviceThatDoesNotAnswerGetsNothingNewUntilItDoes) {
  TickAndWait();
  raw_->Hold();
  now_ += absl::Seconds(10);
  probe_->Tick(now_);
  // The program is cached, so the probe is queued by now; the next Tick sets the time.
  probe_->Tick(now_);
  probe_->Tick(now_ += absl::Seconds(60));
  EXPECT_EQ(device_.health(), Health::kHealthy);
  probe_->Tick(now_ += absl::Seconds(1));
  EXPECT_EQ(device_.health(), Health::kFailed);
  EXPECT_THAT(device_.health_message(), HasSubstr("does not answer: a tiny program has waited"));
  EXPECT_EQ(errors::Reason(device_.CheckUsable(true)), "DEVICE_UNRESPONSIVE");
  EXPECT_TRUE(device_.CheckUsable(false).ok());
  raw_->LetGo();
  ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(device_.health(), Health::kHealthy);
  EXPECT_TRUE(device_.CheckUsable(true).ok());
}

// A kernel that takes longer than predicted is no evidence of a hung device if it can be stopped.
TEST_F(HealthProbeTest, ARunThatTakesTooLongIsStoppedAndTheDeviceIsWell) {
  TickAndWait();
  raw_->StopLists();
  raw_->Hold();
  now_ += absl::Seconds(10);
  probe_->Tick(now_);
  probe_->Tick(now_);
  probe_->Tick(now_ += absl::Minutes(10));
  EXPECT_FALSE(device_.WaitIdle(absl::ZeroDuration()));
  EXPECT_EQ(device_.health(), Health::kHealthy);
  // The work that runs here is the probe itself.
  probe_->Tick(now_ += absl::Seconds(1));
  ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(device_.health(), Health::kHealthy);
  EXPECT_EQ(runs_, 1);
  raw_->LetGo();
  now_ += absl::Seconds(10);
  TickAndWait();
  EXPECT_EQ(device_.health(), Health::kHealthy);
}

// A device on which other work ends is not silent, no matter how long the probe waits.
TEST_F(HealthProbeTest, ABusyDeviceAnswers) {
  TickAndWait();
  raw_->Hold();
  now_ += absl::Seconds(10);
  probe_->Tick(now_);
  probe_->Tick(now_);
  for (int minutes = 0; minutes < 5; ++minutes) {
    const auto other = device_.dispatcher().AddFlow("ann", 1);
    const auto work = std::make_shared<Instant>(device_.dispatcher());
    device_.dispatcher().Enqueue(other, work);
    probe_->Tick(now_ += absl::Seconds(50));
    EXPECT_EQ(device_.health(), Health::kHealthy);
  }
  raw_->LetGo();
  ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
}

TEST_F(HealthProbeTest, AFullDeviceIsNoSickOne) {
  auto all = device_.pool()->AllocateBytes(device_.pool()->total_bytes());
  ASSERT_TRUE(all.ok()) << all.status();
  probe_->Tick(now_);
  programs_.reset();  // waits for the compilation, and with it for the probe
  ASSERT_TRUE(device_.WaitIdle(absl::InfiniteDuration()));
  EXPECT_EQ(runs_, 0);
  EXPECT_EQ(device_.health(), Health::kHealthy);
  device_.pool()->Free(*std::move(all));
}

}  // namespace
}  // namespace kiln::runtime
