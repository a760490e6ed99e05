// Tests of losing a device, of the effects on its users, and of its revival.
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

using ::testing::HasSubstr;
using CudaLostDeviceTest = CudaTest;

// CUDA has destroyed everything in a lost context, so only the graph is released, which belongs to
// no context.
TEST_F(CudaLostDeviceTest, ALostContextTakesItsObjectsWithIt) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list = Prepare({LaunchOf(kernel), LaunchOf(kernel)});
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_FALSE(device().Health().ok());
  EXPECT_THAT(device().Revive().message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  control_->lost = 0;
  ASSERT_TRUE(device().Revive().ok());
  const int64_t objects = control_->objects;
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, objects - 1);
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
  EXPECT_TRUE(RunOn(*devices_[1], *other_list, {there.get(), here.get()}).status.ok());
  Buffer* slots[] = {there.get(), before.get()};
  EXPECT_THAT(devices_[1]->Submit(*other_list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with it"));
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
  auto fill = Prepare({FillCommand{{0, 0, 64}, 1}});
  control_->lost_device = 1;
  control_->lost = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(devices_[1]->CopyToDevice(*other, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_EQ(Read(*buffer), 0x01010101u);
  EXPECT_TRUE(device().Health().ok());
}

}  // namespace
}  // namespace kiln::drivers::cuda
