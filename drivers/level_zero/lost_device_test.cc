// Tests of losing a device, of the effects on its users and on other devices, and of its revival.
#include <future>
#include <memory>
#include <string>

#include "drivers/interface/signal_group.h"
#include "drivers/level_zero/api_types.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::level_zero {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using LevelZeroLostDeviceTest = LevelZeroTest;

TEST_F(LevelZeroLostDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const CommandList commands{.num_slots = 1,
                             .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}};
  auto list = *device().Prepare(commands);
  auto buffer = Zeros(64);
  EXPECT_TRUE(device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = ZE_RESULT_ERROR_DEVICE_LOST;
  const absl::Status lost = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("the device is lost: "));
  EXPECT_THAT(lost.message(), HasSubstr("ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)"));
  EXPECT_EQ(device().Allocate(64).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().LoadKernel(TableImage(1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().CopyToDevice(*buffer, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(device().Revive().message(), HasSubstr("if this does not change, restart kilnd"));
  control_->lost = 0;
  // The device stays lost, even if the library's errors stop.
  EXPECT_FALSE(device().Health().ok());
  ASSERT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
  // Old objects are refused, new ones work.
  auto fresh = Zeros(64);
  Buffer* slots[] = {fresh.get()};
  EXPECT_THAT(device().Submit(*list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(device().CopyToDevice(*buffer, 0, "abc").message(), HasSubstr("was lost with it"));
  EXPECT_FALSE(device().Prepare(commands).ok());
  auto kernel_again = *device().LoadKernel(TableImage(1));
  auto again = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel_again.get(), {{0, 0, 64}}}}});
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  EXPECT_EQ(Read(*fresh), 1u);
}

TEST_F(LevelZeroLostDeviceTest, ADeviceThatIsLostWhileItWorksFailsItsList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {launch, launch, launch}});
  auto buffer = Zeros(64);
  control_->gate.Close();
  std::promise<absl::Status> ended;
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(
      device()
          .Submit(*list, slots, {}, [&](SubmitResult result) { ended.set_value(result.status); })
          .ok());
  // The list is in its first kernel.
  EXPECT_TRUE(Eventually([&] { return control_->gate.held() == 1; }));
  control_->lost = ZE_RESULT_ERROR_DEVICE_LOST;
  control_->gate.Open();
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
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  const LaunchCommand others_launch{others_kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {launch, launch, launch}});
  auto others_list =
      *other.Prepare({.num_slots = 1, .commands = {others_launch, others_launch, others_launch}});
  auto buffer = Zeros(64);
  auto others_buffer = *other.Allocate(64);
  ASSERT_TRUE(other.CopyToDevice(*others_buffer, 0, std::string(64, '\0')).ok());
  const int64_t before = control_->kernels_run;
  control_->lost_then = ZE_RESULT_ERROR_DEVICE_LOST;
  control_->kernels_until_lost = 1;

  const absl::Status lost = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("ZE_RESULT_ERROR_DEVICE_LOST (0x70000001)"));
  EXPECT_EQ(control_->kernels_run, before + 1);
  EXPECT_EQ(device().Health(), lost);
  std::promise<absl::Status> ended;
  Buffer* slots[] = {others_buffer.get()};
  ASSERT_TRUE(other
                  .Submit(*others_list, slots, {},
                          [&](SubmitResult result) { ended.set_value(result.status); })
                  .ok());
  EXPECT_EQ(ended.get_future().get(), absl::OkStatus());
  uint32_t sum = 0;
  EXPECT_TRUE(
      other.CopyToHost(*others_buffer, 0, {reinterpret_cast<char*>(&sum), sizeof(sum)}).ok());
  EXPECT_EQ(sum, 3u);
  EXPECT_EQ(other.Health(), absl::OkStatus());
}

// A list that waits for a signal of the lost device ends with that device's error.
TEST_F(LevelZeroLostDeviceTest, ADeviceThatIsLostInMidListEndsTheWaitsForIt) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto signals =
      *device().Prepare({.num_slots = 1, .commands = {launch, launch, SignalCommand{0}}});
  auto waits = *devices_[1]->Prepare({.num_slots = 0, .commands = {WaitCommand{0}}});
  auto buffer = Zeros(64);
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
