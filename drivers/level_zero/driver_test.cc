// Tests of finding devices, of the reasons if there are none, and of their properties.
#include "drivers/level_zero/testing/stand_in_fixture.h"

namespace kiln::drivers::level_zero {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using LevelZeroDriverTest = LevelZeroTest;

// Without a driver the loader crashes in every later call; the stand-in reports such calls as
// errors.
TEST_F(LevelZeroDriverTest, WithoutADriverNothingElseIsCalled) {
  control_->init_fails = ZE_RESULT_ERROR_UNINITIALIZED;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("(ZE_RESULT_ERROR_UNINITIALIZED (0x78000001))"));
  EXPECT_THAT(why_none_, HasSubstr("that kilnd may open /dev/dri/renderD*"));
}

TEST_F(LevelZeroDriverTest, NoDeviceSaysWhatToLookAt) {
  control_->devices = 0;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("Level Zero has no device"));
}

TEST_F(LevelZeroDriverTest, IntegratedDevicesAreOfferedWhereTheyAreNamed) {
  control_->integrated = true;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, StartsWith("level_zero:0 (stand-in GPU ("));
  EXPECT_THAT(why_none_, HasSubstr("shares the memory of the host"));
  Open({.sharing_host_memory = true});
  ASSERT_EQ(devices_.size(), 1u);
  EXPECT_EQ(device().info().memory_bytes, int64_t{1} << 30);
}

TEST_F(LevelZeroDriverTest, DevicesWithoutSpirv12AreLeftOut) {
  control_->spirv_minor = 1;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("does not accept SPIR-V 1.2"));
}

TEST_F(LevelZeroDriverTest, TheTargetIsWhatTheDeviceSays) {
  Open();
  ASSERT_EQ(devices_.size(), 1u);
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.name, "level_zero:0");
  EXPECT_EQ(info.model, "stand-in GPU (01000000000000000000000000000000)");
  EXPECT_EQ(info.memory_bytes, (int64_t{2} << 30) / 8 * 7);
  const Target& target = info.target;
  EXPECT_EQ(target.architecture, "spirv64");
  EXPECT_EQ(target.processor, "stand-in GPU");
  EXPECT_TRUE(target.Has("correctly-rounded-divide-sqrt"));
  EXPECT_EQ(target.limits.compute_units, 4);
  EXPECT_EQ(target.limits.threads_per_block, 1024);
  EXPECT_EQ(target.limits.threads_per_subgroup, 32);
  EXPECT_EQ(target.limits.threads_per_unit, 16 * 8 * 32);
  EXPECT_EQ(target.limits.register_bytes_per_unit, 16 * 8 * 4096);
  EXPECT_EQ(target.limits.shared_bytes_per_block, 64 << 10);
  EXPECT_EQ(target.limits.private_cache_bytes, 2 << 20);
  EXPECT_EQ(target.limits.arguments_max, 254);
  EXPECT_TRUE(target.capabilities.fma);
  EXPECT_TRUE(target.capabilities.fp16);
  EXPECT_TRUE(target.capabilities.fp64);
  EXPECT_DOUBLE_EQ(target.rates.flops_per_second, 2.0 * 16 * 8 * 2e9 * 4);
  EXPECT_DOUBLE_EQ(target.rates.bytes_per_second, 64e9);
  EXPECT_EQ(target.finisher.driver, "level_zero");
  control_->fp64 = false;
  Open();
  EXPECT_FALSE(device().info().target.capabilities.fp64);
}

TEST_F(LevelZeroDriverTest, AllDevicesAreOpened) {
  control_->devices = 3;
  Open();
  ASSERT_EQ(devices_.size(), 3u);
  EXPECT_EQ(devices_[2]->info().name, "level_zero:2");
  EXPECT_THAT(devices_[2]->info().model, HasSubstr("(03"));
}

}  // namespace
}  // namespace kiln::drivers::level_zero
