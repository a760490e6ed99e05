#include "server/tuner/daemon_trials.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "compiler/compiler.h"
#include "drivers/cpu/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/buffers/account.h"
#include "server/buffers/pool.h"
#include "server/tuner/device_trials.h"

namespace kiln::tuner {
namespace {

constexpr char kSquares[] = R"(buffer b0 float32[16] read
buffer b1 float32[16] write
stage r0:16
  b1[r0] = b0[r0] * b0[r0]
)";

class DaemonTrialsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why_none;
    auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
    ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
    device_ = std::make_unique<runtime::ManagedDevice>(std::move(devices->front()), 0,
                                                       metrics_.ForDevice("cpu:0"), SystemClock());
    kernel_ = *kernel::ParseKernel(kSquares, context_);
  }

  ir::Context context_;
  kernel::Kernel kernel_;
  metrics::Metrics metrics_{"test"};
  std::unique_ptr<runtime::ManagedDevice> device_;
};

TEST_F(DaemonTrialsTest, RunInAProcessAndInTurns) {
  std::vector<std::string> asked;
  const auto make = TrialsInProcesses([&](const drivers::DeviceInfo& info) {
    asked.push_back(info.name);
    return std::vector<std::string>{"/proc/self/exe", "--trials"};
  });
  auto runner = make(kernel_, *device_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_THAT(asked, ::testing::ElementsAre("cpu:0"));
  const auto image = compiler::CompileJob({.name = "squares",
                                           .kernel = kernel::Print(kernel_),
                                           .schedule = "",
                                           .target = device_->info().target});
  ASSERT_TRUE(image.ok()) << image.status();
  const auto trial = (*runner)->Load(*image);
  ASSERT_TRUE(trial.ok()) << trial.status();
  EXPECT_EQ(device_->dispatcher().device_seconds(), 0);
  EXPECT_TRUE((*trial)->Time(3, /*seconds_max=*/600).ok());
  EXPECT_GT(device_->dispatcher().device_seconds(), 0);
  EXPECT_TRUE((*trial)->Run({kernel::Sample::kEqual}, /*seconds_max=*/600).ok());
  EXPECT_TRUE(device_->WaitIdle(absl::ZeroDuration()));
}

TEST_F(DaemonTrialsTest, TheirMemoryIsChargedToTheDevice) {
  const auto make = TrialsInProcesses([](const drivers::DeviceInfo&) {
    return std::vector<std::string>{"/proc/self/exe", "--trials"};
  });
  EXPECT_EQ(device_->pool()->used_bytes(), 0);
  auto runner = make(kernel_, *device_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ(device_->pool()->used_bytes(), DeviceTrials::BytesOf(kernel_, device_->info().target));
  // Users get it while the trials are paused.
  (*runner)->Pause();
  EXPECT_EQ(device_->pool()->used_bytes(), 0);
  (*runner)->Resume();
  EXPECT_EQ((*runner)->Prepare({}), absl::OkStatus());
  EXPECT_EQ(device_->pool()->used_bytes(), DeviceTrials::BytesOf(kernel_, device_->info().target));
  (*runner)->Pause();
  (*runner)->Resume();
  auto users = device_->pool()->Reserve(device_->pool()->total_bytes(),
                                        std::make_shared<buffers::Account>());
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_TRUE(absl::IsUnavailable((*runner)->Prepare({})));
  users->reset();
  EXPECT_EQ((*runner)->Prepare({}), absl::OkStatus());
  runner->reset();
  EXPECT_EQ(device_->pool()->used_bytes(), 0);
}

TEST_F(DaemonTrialsTest, AUserMayAllocateAllOfTheDevice) {
  const auto make = TrialsInProcesses([](const drivers::DeviceInfo&) {
    return std::vector<std::string>{"/proc/self/exe", "--trials"};
  });
  auto runner = make(kernel_, *device_);
  ASSERT_TRUE(runner.ok()) << runner.status();
  ASSERT_EQ((*runner)->Prepare({}), absl::OkStatus());
  const std::shared_ptr<buffers::Pool>& pool = device_->pool();
  const auto allocate_all = [&] {
    return pool->Reserve(pool->total_bytes(), std::make_shared<buffers::Account>());
  };
  // A search that a user has asked for keeps its memory.
  EXPECT_TRUE(absl::IsResourceExhausted(allocate_all().status()));
  int yielded = 0;
  (*runner)->SetOnYield([&] { ++yielded; });
  auto users = allocate_all();
  ASSERT_TRUE(users.ok()) << users.status();
  EXPECT_EQ(yielded, 1);
  EXPECT_EQ(pool->used_bytes(), pool->total_bytes());
  EXPECT_TRUE(absl::IsAborted((*runner)->Prepare({})));
  (*runner)->Pause();
  users->reset();
  EXPECT_EQ(pool->used_bytes(), 0);
  (*runner)->Resume();
  EXPECT_EQ((*runner)->Prepare({}), absl::OkStatus());
  EXPECT_EQ(pool->used_bytes(), DeviceTrials::BytesOf(kernel_, device_->info().target));
}

TEST_F(DaemonTrialsTest, TheirMemoryIsBounded) {
  // No process is needed.
  const auto make = TrialsInProcesses(
      [](const drivers::DeviceInfo&) { return std::vector<std::string>{"/no/such/program"}; });
  const int64_t bytes = DeviceTrials::BytesOf(kernel_, device_->info().target);
  std::string why_none;
  auto devices = drivers::cpu::CpuDriver({.threads_per_device = 1}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok() && !devices->empty()) << why_none;
  // Of less than twice the memory, half is not enough.
  runtime::ManagedDevice small(std::move(devices->front()), 2 * bytes - 1,
                               metrics_.ForDevice("cpu:1"), SystemClock());
  const auto refused = make(kernel_, small).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  EXPECT_THAT(refused.message(), ::testing::HasSubstr("<tuner>"));
  EXPECT_EQ(small.pool()->used_bytes(), 0);
}

TEST_F(DaemonTrialsTest, NeedAUsableDevice) {
  device_->SetDraining(true);
  const auto make = TrialsInProcesses([](const drivers::DeviceInfo&) {
    ADD_FAILURE() << "no process is needed";
    return std::vector<std::string>();
  });
  EXPECT_TRUE(absl::IsUnavailable(make(kernel_, *device_).status()));
}

}  // namespace
}  // namespace kiln::tuner
