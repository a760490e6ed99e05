// Tests of losing a device while it works, and of the effects on its users and on other devices.
#include <future>
#include <memory>
#include <vector>

#include "drivers/interface/signal_group.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::level_zero {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using LevelZeroLostDeviceTest = LevelZeroTest;

TEST_F(LevelZeroLostDeviceTest, ADeviceThatIsLostWhileItWorksFailsItsList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare(std::vector<Command>(3, LaunchOf(kernel)));
  auto buffer = Zeros();
  control_->launch_gate.Close();
  std::promise<absl::Status> ended;
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(
      device()
          .Submit(*list, slots, {}, [&](SubmitResult result) { ended.set_value(result.status); })
          .ok());
  // The list is in its first kernel.
  EXPECT_TRUE(Eventually([&] { return control_->launch_gate.held() == 1; }));
  control_->lost = ZE_RESULT_ERROR_DEVICE_LOST;
  control_->launch_gate.Open();
  EXPECT_EQ(ended.get_future().get().code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device().Health().ok());
}

// After the first of three kernels: the others do not run, and another device's list does.
TEST_F(LevelZeroLostDeviceTest, ADeviceThatIsLostInMidListFailsAlone) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  Device& other = *devices_[1];
  auto kernel = *device().LoadKernel(Image(1));
  auto others_kernel = *other.LoadKernel(Image(1));
  const LaunchCommand others_launch = LaunchOf(others_kernel);
  auto list = Prepare(std::vector<Command>(3, LaunchOf(kernel)));
  auto others_list =
      *other.Prepare({.num_slots = 1, .commands = {others_launch, others_launch, others_launch}});
  auto buffer = Zeros();
  auto others_buffer = Zeros(other);
  const int64_t before = control_->kernels_run;
  control_->lost_then = ZE_RESULT_ERROR_DEVICE_LOST;
  control_->kernels_until_lost = 1;

  const absl::Status lost = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)"));
  EXPECT_EQ(control_->kernels_run, before + 1);
  EXPECT_EQ(device().Health(), lost);
  EXPECT_EQ(RunOn(other, *others_list, {others_buffer.get()}).status, absl::OkStatus());
  EXPECT_EQ(Read(other, *others_buffer), 3u);
  EXPECT_EQ(other.Health(), absl::OkStatus());
}

// A list that waits for a signal of the lost device ends with that device's error.
TEST_F(LevelZeroLostDeviceTest, ADeviceThatIsLostInMidListEndsTheWaitsForIt) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto kernel = *device().LoadKernel(Image(1));
  auto signals = Prepare({LaunchOf(kernel), LaunchOf(kernel), SignalCommand{0}});
  auto waits = *devices_[1]->Prepare({.num_slots = 0, .commands = {WaitCommand{0}}});
  auto buffer = Zeros();
  const SubmitOptions together = {.group =
                                      std::make_shared<SignalGroup>(std::make_shared<Signals>(1))};
  std::promise<absl::Status> waited;
  ASSERT_TRUE(devices_[1]
                  ->Submit(*waits, {}, together,
                           [&](SubmitResult result) { waited.set_value(result.status); })
                  .ok());
  control_->lost_then = ZE_RESULT_ERROR_DEVICE_LOST;
  control_->kernels_until_lost = 1;
  const absl::Status lost = Run(*signals, {buffer.get()}, together).status;
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(waited.get_future().get(), lost);
  EXPECT_EQ(devices_[1]->Health(), absl::OkStatus());
}

}  // namespace
}  // namespace kiln::drivers::level_zero
