// Tests of programs built by another process; drivers/common/queued_device/testing has the rest.
#include "drivers/common/queued_device/testing/finish_tests.h"
#include "drivers/opencl/testing/stand_in_fixture.h"

namespace kiln::drivers::opencl {
namespace {

class OpenClFinishTest : public drivers::testing::FinishTest<StandIn> {};

TEST_F(OpenClFinishTest, DevicesAreFoundByName) {
  Open({.sharing_host_memory = true});
  ASSERT_EQ(devices_.size(), 2u);
  const Finisher gpu = devices_[0]->info().target.finisher;
  const Finisher cpu = devices_[1]->info().target.finisher;
  EXPECT_EQ(gpu.device, "stand-in GPU, stand-in");
  EXPECT_NE(gpu.device, cpu.device);
  // The devices are in another order, with others between them.
  control_->gpus = 3;
  EXPECT_TRUE(driver_->Finish(Image(1), cpu).ok());
  EXPECT_TRUE(driver_->Finish(Image(1), gpu).ok());
}

}  // namespace
}  // namespace kiln::drivers::opencl

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(OpenCl, FinishTest, opencl::StandIn);
}  // namespace kiln::drivers::testing
