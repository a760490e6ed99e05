// Tests of finding devices, and of the reasons if there are none.
#include "drivers/hsa/device_query.h"
#include "drivers/hsa/testing/stand_in_fixture.h"

namespace kiln::drivers::hsa {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using HsaDriverTest = HsaTest;

// The runtime's error if there is no /dev/kfd.
TEST_F(HsaDriverTest, WithoutTheKernelsDriverItSaysWhatToLookAt) {
  control_->init_fails = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("(0x1008: HSA_STATUS_ERROR_OUT_OF_RESOURCES"));
  EXPECT_THAT(why_none_, HasSubstr("check that /dev/kfd exists"));
}

TEST_F(HsaDriverTest, WithoutAGpuItSaysHowToFindOut) {
  control_->devices = 0;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("check that rocminfo lists one"));
}

TEST_F(HsaDriverTest, OtherProcessorsAreLeftOut) {
  control_->isa = "amdgcn-amd-amdhsa--gfx803";
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, StartsWith("hsa:0 (Stand-in for a GPU of AMD's (GPU-"));
  EXPECT_THAT(why_none_, HasSubstr("is gfx803; Kiln generates code for gfx90a, gfx942, gfx1030"));
}

TEST_F(HsaDriverTest, TargetIsWhatTheAgentSays) {
  Open();
  ASSERT_EQ(devices_.size(), 1u) << why_none_;
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.name, "hsa:0");
  EXPECT_EQ(info.target.architecture, "amdgcn");
  EXPECT_EQ(info.target.processor, "gfx1100");
  EXPECT_EQ(info.pci_address, "0000:03:00.0");
  EXPECT_EQ(info.target.features, "+kiln-host-twin");
  EXPECT_EQ(info.target.variant, "gfx1100,wave32");
  EXPECT_TRUE(info.target.capabilities.fma && info.target.capabilities.fp64);
  EXPECT_EQ(info.target.limits.compute_units, 4);
  EXPECT_EQ(info.target.limits.threads_per_subgroup, 32);
  EXPECT_EQ(info.target.limits.threads_per_shuffle, 32);
  EXPECT_EQ(info.target.limits.threads_per_block, 1024);
  EXPECT_EQ(info.target.limits.threads_per_unit, 1024);
  EXPECT_EQ(info.target.limits.shared_bytes_per_block, 64 << 10);
  EXPECT_EQ(info.target.limits.register_bytes_per_unit, 384 << 10);
  EXPECT_EQ(info.target.costs.Key(), kGpuCosts.Key());
  // 128 lanes of 4 units at 2.5 GHz; 384 bits twice at 1.25 GHz.
  EXPECT_DOUBLE_EQ(info.target.rates.flops_per_second, 2 * 128 * 4 * 2.5e9);
  EXPECT_DOUBLE_EQ(info.target.rates.bytes_per_second, 2 * 48 * 1.25e9);
  EXPECT_EQ(info.memory_bytes, control_->memory_bytes / 8 * 7);
}

TEST_F(HsaDriverTest, WideWavesHandValuesAsFarAsTheirProcessorReaches) {
  control_->wave = 64;
  Open();
  EXPECT_EQ(device().info().target.limits.threads_per_subgroup, 64);
  EXPECT_EQ(device().info().target.limits.threads_per_shuffle, 32);
  control_->isa = "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-";
  Open();
  EXPECT_EQ(device().info().target.features, "+sramecc,-xnack");
  EXPECT_EQ(device().info().target.limits.threads_per_shuffle, 64);
  control_->wave = 32;
  Open();
  EXPECT_THAT(devices_, IsEmpty());
  EXPECT_THAT(why_none_, HasSubstr("has waves of 32 threads"));
}

TEST(HsaIsaNameTest, IsTakenApart) {
  EXPECT_EQ(ParseIsaName("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-").processor, "gfx942");
  EXPECT_EQ(ParseIsaName("amdgcn-amd-amdhsa--gfx942:sramecc+:xnack-").features, "+sramecc,-xnack");
  EXPECT_EQ(ParseIsaName("amdgcn-amd-amdhsa--gfx1100").features, "");
  EXPECT_EQ(ParseIsaName("something else").processor, "");
}

}  // namespace
}  // namespace kiln::drivers::hsa
