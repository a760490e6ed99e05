// Tests of modules built by another process; drivers/common/queued_device/testing has the rest.
#include "drivers/common/queued_device/testing/finish_tests.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"

namespace kiln::drivers::level_zero {
namespace {

class LevelZeroFinishTest : public drivers::testing::FinishTest<StandIn> {};

TEST_F(LevelZeroFinishTest, EachDeviceHasItsName) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  const Finisher first = devices_[0]->info().target.finisher;
  const Finisher second = devices_[1]->info().target.finisher;
  EXPECT_EQ(first.device, "stand-in GPU (01000000000000000000000000000000)");
  EXPECT_NE(first.device, second.device);
  EXPECT_TRUE(driver_->Finish(Image(1), second).ok());
  EXPECT_TRUE(driver_->Finish(Image(1), first).ok());
}

}  // namespace
}  // namespace kiln::drivers::level_zero

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(LevelZero, FinishTest, level_zero::StandIn);
}  // namespace kiln::drivers::testing
