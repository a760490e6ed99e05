// Tests of losing a device, of the effects on its users, and of its revival.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "drivers/hsa/api.h"
#include "drivers/hsa/testing/stand_in_fixture.h"

namespace kiln::drivers::hsa {
namespace {

using ::testing::HasSubstr;
using HsaLostDeviceTest = HsaTest;

TEST_F(HsaLostDeviceTest, AFaultInAKernelLosesTheDevice) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = HSA_STATUS_ERROR_MEMORY_FAULT;
  const absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("the device is lost: its queue failed: 0x2b"));
  EXPECT_THAT(status.message(), HasSubstr("HSA_STATUS_ERROR_MEMORY_FAULT"));
  EXPECT_EQ(device().Health(), status);
  EXPECT_EQ(device().Allocate(64).status(), status);
}

TEST_F(HsaLostDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  const CommandList commands{.num_slots = 1, .commands = {launch, launch}};
  auto list = *device().Prepare(commands);
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = HSA_STATUS_ERROR_EXCEPTION;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = device().Revive();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("HSA_STATUS_ERROR_EXCEPTION"));
    EXPECT_THAT(status.message(), HasSubstr("if this does not change, restart kilnd"));
    EXPECT_FALSE(device().Health().ok());
  }
  control_->lost = 0;
  EXPECT_FALSE(device().Health().ok());
  ASSERT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
  // Old objects are refused, new ones work.
  auto fresh = *device().Allocate(64);
  Clear(*fresh);
  Buffer* slots[] = {fresh.get()};
  EXPECT_THAT(device().Submit(*list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(device().CopyToDevice(*buffer, 0, "abc").message(), HasSubstr("was lost with it"));
  EXPECT_FALSE(device().Prepare(commands).ok());
  auto kernel_again = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch_again{kernel_again.get(), {{0, 0, 64}}};
  auto again = *device().Prepare({.num_slots = 1, .commands = {launch_again, launch_again}});
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*fresh), 4u);
}

TEST_F(HsaLostDeviceTest, ADeviceIsRevivedTimeAndAgain) {
  Open();
  for (int i = 0; i < 5; ++i) {
    auto kernel = *device().LoadKernel(TableImage(1));
    auto list = *device().Prepare(
        {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
    auto buffer = *device().Allocate(64);
    EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
    control_->next_launch_fails = HSA_STATUS_ERROR_ILLEGAL_INSTRUCTION;
    EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
}

// Other threads free buffers, load kernels and query health at the same time.
TEST_F(HsaLostDeviceTest, WhatGoesOnBesideARevivalDoesNoHarm) {
  Open();
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const auto buffer = device().Allocate(1 << 20);
        const auto kernel = device().LoadKernel(TableImage(1));
        EXPECT_TRUE(buffer.ok() || absl::IsUnavailable(buffer.status())) << buffer.status();
        EXPECT_TRUE(kernel.ok() || absl::IsUnavailable(kernel.status())) << kernel.status();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    auto empty = device().Prepare({.num_slots = 0, .commands = {}});
    ASSERT_TRUE(empty.ok()) << empty.status();
    control_->lost = HSA_STATUS_ERROR_EXCEPTION;
    EXPECT_FALSE(Run(**empty, {}).status.ok());
    EXPECT_FALSE(device().Health().ok());
    control_->lost = 0;
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(HsaLostDeviceTest, OtherDevicesGoOn) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto buffer = *device().Allocate(64);
  auto other = *devices_[1]->Allocate(64);
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  EXPECT_TRUE(Run(*fill, {other.get()}).status.ok()) << "a peer's memory";
  control_->lost_device = 1;
  control_->lost = HSA_STATUS_ERROR_EXCEPTION;
  auto there = *devices_[1]->Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  std::promise<absl::Status> lost;
  Buffer* slots[] = {other.get()};
  ASSERT_TRUE(devices_[1]
                  ->Submit(*there, slots, {},
                           [&](const SubmitResult& result) { lost.set_value(result.status); })
                  .ok());
  EXPECT_EQ(lost.get_future().get().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*buffer), 0x01010101u);
  EXPECT_TRUE(device().Health().ok());
  EXPECT_FALSE(device().Submit(*fill, slots, {}, [](SubmitResult) {}).ok()) << "it was lost";
}

}  // namespace
}  // namespace kiln::drivers::hsa
