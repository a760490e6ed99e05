// Tests of finding devices, and of the reasons if there are none.
#include <string>

#include "drivers/opencl/testing/stand_in_fixture.h"

namespace kiln::drivers::opencl {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using OpenClDriverTest = OpenClTest;

TEST_F(OpenClDriverTest, NoPlatformIsNoDevice) {
  control_->has_platform = false;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("no OpenCL platform is installed; install"));
}

TEST_F(OpenClDriverTest, PlatformsWithoutDevicesAreNamed) {
  control_->gpus = 0;
  control_->cpus = 0;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("the OpenCL platforms (stand-in) have no device"));
}

TEST_F(OpenClDriverTest, CpusAreOpenedOnlyIfAskedFor) {
  Open();
  ASSERT_EQ(devices_.size(), 1u);
  EXPECT_EQ(device().info().model, "stand-in GPU, stand-in");
  EXPECT_EQ(device().info().name, "opencl:0");
  EXPECT_EQ(why_none_,
            "opencl:1 (stand-in CPU, stand-in) is a CPU, which is used only if it is named");
  Open({.sharing_host_memory = true});
  ASSERT_EQ(devices_.size(), 2u);
  EXPECT_EQ(devices_[1]->info().name, "opencl:1");
  EXPECT_EQ(devices_[1]->info().model, "stand-in CPU, stand-in");
  EXPECT_EQ(why_none_, "");
}

TEST_F(OpenClDriverTest, OnePlatformMayBeAskedFor) {
  const auto devices_of = [this](const std::string& platform) {
    return OpenClDriver({.platform = platform, .library = KILN_OPENCL_STAND_IN})
        .Enumerate(&why_none_)
        ->size();
  };
  EXPECT_EQ(devices_of("stand"), 1u);
  EXPECT_EQ(devices_of("Intel"), 0u);
  EXPECT_THAT(why_none_,
              HasSubstr("(stand-in GPU, stand-in) is not of the requested platform, Intel"));
}

TEST_F(OpenClDriverTest, WhatTakesTheHostsMemoryIsOpenedOnlyIfAskedFor) {
  control_->gpus_share_memory = true;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_,
              HasSubstr("(stand-in GPU, stand-in) shares the memory of the host, so it is used"));
  Open({.sharing_host_memory = true});
  EXPECT_EQ(devices_.size(), 2u);
}

TEST_F(OpenClDriverTest, DevicesWithoutSharedVirtualMemoryAreLeftOut) {
  control_->has_shared_virtual_memory = false;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_,
              HasSubstr("opencl:0 (stand-in GPU, stand-in) has no shared virtual memory"));
}

TEST_F(OpenClDriverTest, TargetIsWhatTheDeviceSays) {
  Open();
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.target.architecture, "opencl-c");
  EXPECT_EQ(info.target.processor, "stand-in GPU");
  EXPECT_FALSE(info.target.Has("correctly-rounded-divide-sqrt"));
  EXPECT_TRUE(info.target.capabilities.fp64 && info.target.capabilities.fma);
  EXPECT_FALSE(info.target.capabilities.fp16);
  EXPECT_EQ(info.target.limits.threads_per_block, 256);
  EXPECT_EQ(info.target.limits.vector_bytes, 4);
  EXPECT_EQ(info.target.limits.compute_units, 4);
  EXPECT_EQ(info.target.limits.shared_bytes_per_block, 48 << 10);
  EXPECT_EQ(info.target.costs.Key(), kGpuCosts.Key());
  EXPECT_DOUBLE_EQ(info.target.rates.flops_per_second, 2 * 64 * 4 * 1.5e9);
  EXPECT_EQ(info.memory_bytes, (int64_t{1} << 30) / 8 * 7);
}

TEST_F(OpenClDriverTest, ProcessorsKeepTheCostsOfOne) {
  Open({.sharing_host_memory = true});
  ASSERT_EQ(devices_.size(), 2u);
  EXPECT_EQ(devices_[1]->info().target.costs.Key(), kVectorCoreCosts.Key());
  EXPECT_EQ(devices_[1]->info().target.rates.flops_per_second, kVectorCoreRates.flops_per_second);
}

}  // namespace
}  // namespace kiln::drivers::opencl
