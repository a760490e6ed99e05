// Tests of losing a device, of the effects on its users, and of its revival.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "drivers/cuda/api.h"
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

using ::testing::HasSubstr;
using CudaLostDeviceTest = CudaTest;

TEST_F(CudaLostDeviceTest, AFaultInAKernelLosesTheDevice) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
  const absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("the device is lost: "));
  EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  EXPECT_EQ(device().Health(), status);
}

TEST_F(CudaLostDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  const CommandList commands{.num_slots = 1, .commands = {launch, launch}};
  auto list = *device().Prepare(commands);
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = device().Revive();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
    EXPECT_THAT(status.message(), HasSubstr("if this does not change, restart kilnd"));
    EXPECT_FALSE(device().Health().ok());
  }
  control_->lost = 0;
  EXPECT_FALSE(device().Health().ok());
  ASSERT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
  // Old objects are refused, new ones work.
  auto fresh = *device().Allocate(64);
  ASSERT_TRUE(device().CopyToDevice(*fresh, 0, std::string(64, '\0')).ok());
  Buffer* slots[] = {fresh.get()};
  EXPECT_THAT(device().Submit(*list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(device().CopyToDevice(*buffer, 0, "abc").message(), HasSubstr("was lost with it"));
  EXPECT_FALSE(device().Prepare(commands).ok());
  auto kernel_again = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch_again{kernel_again.get(), {{0, 0, 64}}};
  auto again = *device().Prepare({.num_slots = 1, .commands = {launch_again, launch_again}});
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  // CUDA has destroyed everything in the lost context, so only the graph is released, which belongs
  // to no context.
  const int64_t objects = control_->objects;
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, objects - 1);
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*fresh), 4u);
}

TEST_F(CudaLostDeviceTest, ADeviceIsRevivedTimeAndAgain) {
  Open();
  for (int i = 0; i < 5; ++i) {
    auto kernel = *device().LoadKernel(TableImage(1));
    auto list = *device().Prepare(
        {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
    auto buffer = *device().Allocate(64);
    EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
    control_->next_launch_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
    EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
}

// Other threads free buffers, load kernels and query health at the same time.
TEST_F(CudaLostDeviceTest, WhatGoesOnBesideARevivalDoesNoHarm) {
  Open();
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const auto buffer = device().Allocate(1 << 20);
        const auto kernel = device().LoadKernel(TableImage(1));
        EXPECT_EQ(buffer.status().ok() || absl::IsUnavailable(buffer.status()), true);
        EXPECT_EQ(kernel.status().ok() || absl::IsUnavailable(kernel.status()), true);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
    EXPECT_FALSE(device().Health().ok());
    control_->lost = 0;
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaLostDeviceTest, ARevivedDeviceAndItsPeersReachEachOther) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto before = *device().Allocate(64);
  control_->lost = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_FALSE(device().Health().ok());
  control_->lost = 0;
  ASSERT_TRUE(device().Revive().ok());
  auto here = *device().Allocate(64);
  auto there = *devices_[1]->Allocate(64);
  const CommandList copy{
      .num_slots = 2,
      .commands = {FillCommand{{0, 0, 64}, 1}, CopyCommand{{0, 0, 64}, {1, 0, 64}}}};
  auto list = *device().Prepare(copy);
  EXPECT_TRUE(Run(*list, {here.get(), there.get()}).status.ok());
  auto other_list = *devices_[1]->Prepare(copy);
  Buffer* slots[] = {there.get(), here.get()};
  std::promise<absl::Status> done;
  ASSERT_TRUE(devices_[1]
                  ->Submit(*other_list, slots, {},
                           [&](const SubmitResult& result) { done.set_value(result.status); })
                  .ok());
  EXPECT_EQ(done.get_future().get(), absl::OkStatus());
  slots[1] = before.get();
  EXPECT_THAT(devices_[1]->Submit(*other_list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with it"));
}

TEST_F(CudaLostDeviceTest, ALostDeviceStaysLost) {
  Open();
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  ASSERT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(device().Health().message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  // The device stays lost, even if the library's errors stop.
  control_->lost = 0;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Allocate(64).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().LoadKernel(Image(1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().CopyToDevice(*buffer, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable);
  // A new device works once nothing of the lost one is left.
  buffer = nullptr;
  fill = nullptr;
  devices_.clear();
  Open();
  ASSERT_EQ(devices_.size(), 1u) << why_none_;
  EXPECT_TRUE(device().Allocate(64).ok());
}

TEST_F(CudaLostDeviceTest, ALossThatAnAllocationMeetsIsNoLackOfMemory) {
  Open();
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  EXPECT_EQ(device().Health(), status);
}

TEST_F(CudaLostDeviceTest, ALossWhileNothingRunsIsSeen) {
  for (const CUresult code : {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_MPS_CLIENT_TERMINATED,
                              CUDA_ERROR_TENSOR_MEMORY_LEAK}) {
    Open();
    EXPECT_TRUE(device().Health().ok());
    control_->lost = code;
    EXPECT_EQ(device().Health().code(), absl::StatusCode::kUnavailable) << code;
    EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable) << code;
    control_->lost = 0;
    devices_.clear();
  }
}

TEST_F(CudaLostDeviceTest, AnotherDeviceGoesOn) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto buffer = *device().Allocate(64);
  auto other = *devices_[1]->Allocate(64);
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  control_->lost_device = 1;
  control_->lost = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(devices_[1]->CopyToDevice(*other, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*buffer), 0x01010101u);
  EXPECT_TRUE(device().Health().ok());
}

}  // namespace
}  // namespace kiln::drivers::cuda
