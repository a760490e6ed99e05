// Tests of finding devices, and of the reasons if there are none.
#include "drivers/cuda/device_query.h"
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using CudaDriverTest = CudaTest;

TEST_F(CudaDriverTest, OldDriversAreNamedWithTheirVersion) {
  control_->driver_version = 11080;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("supports CUDA 11.8; Kiln needs CUDA 12.0; install"));
}

TEST_F(CudaDriverTest, WithoutADeviceItSaysHowToFindOut) {
  control_->init_fails = CUDA_ERROR_NO_DEVICE;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("(CUDA_ERROR_NO_DEVICE (100)"));
  EXPECT_THAT(why_none_, HasSubstr("check that nvidia-smi lists one"));
}

TEST_F(CudaDriverTest, OldDevicesAreLeftOut) {
  control_->compute_capability = 70;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, StartsWith("cuda:0 ("));
  EXPECT_THAT(why_none_, HasSubstr("has compute capability 7.0; Kiln needs 7.5 or more"));
}

TEST_F(CudaDriverTest, TargetIsWhatTheDeviceSays) {
  Open();
  ASSERT_EQ(devices_.size(), 1u);
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.name, "cuda:0");
  EXPECT_THAT(info.model, HasSubstr(" (GPU-"));
  EXPECT_EQ(info.pci_address, "0001:3b:00.0");
  EXPECT_EQ(info.target.architecture, "nvptx64");
  EXPECT_EQ(info.target.processor, "sm_80");
  EXPECT_EQ(info.target.features, "+ptx78");
  EXPECT_TRUE(info.target.capabilities.fma && info.target.capabilities.fp64);
  EXPECT_EQ(info.target.limits.compute_units, 4);
  EXPECT_EQ(info.target.limits.threads_per_subgroup, 32);
  EXPECT_EQ(info.target.limits.threads_per_block, 1024);
  EXPECT_EQ(info.target.limits.shared_bytes_per_block, 48 << 10);
  EXPECT_EQ(info.target.limits.arguments_max, 510);
  EXPECT_EQ(info.target.limits.register_bytes_per_unit, 256 << 10);
  EXPECT_EQ(info.target.costs.Key(), kGpuCosts.Key());
  // 64 lanes of 4 units at 1.41 GHz; 5,120 bits twice at 1.215 GHz.
  EXPECT_DOUBLE_EQ(info.target.rates.flops_per_second, 2 * 64 * 4 * 1.41e9);
  EXPECT_DOUBLE_EQ(info.target.rates.bytes_per_second, 2 * 640 * 1.215e9);
  EXPECT_EQ(info.memory_bytes, control_->memory_bytes / 8 * 7);
}

// A GPU newer than all known ones runs PTX of the newest known one.
TEST_F(CudaDriverTest, EachGenerationHasItsProcessor) {
  const struct {
    int capability;
    const char* processor;
    const char* features;
  } rows[] = {{75, "sm_75", "+ptx78"},   {89, "sm_89", "+ptx78"},   {90, "sm_90", "+ptx78"},
              {100, "sm_100", "+ptx86"}, {110, "sm_103", "+ptx88"}, {130, "sm_121", "+ptx88"}};
  for (const auto& row : rows) {
    control_->compute_capability = row.capability;
    Open();
    ASSERT_EQ(devices_.size(), 1u) << why_none_;
    EXPECT_EQ(device().info().target.processor, row.processor);
    EXPECT_EQ(device().info().target.features, row.features);
  }
}

TEST(CudaTargetTest, WhatADeviceDoesNotTellIsAGuess) {
  const Target target = MakeTarget([](CUdevice_attribute) { return 0; });
  EXPECT_EQ(target.limits.compute_units, 1);
  EXPECT_EQ(target.limits.register_bytes_per_unit, Limits().register_bytes_per_unit);
  EXPECT_EQ(target.rates.flops_per_second, kGpuRates.flops_per_second);
  EXPECT_EQ(target.rates.bytes_per_second, kGpuRates.bytes_per_second);
}

}  // namespace
}  // namespace kiln::drivers::cuda
