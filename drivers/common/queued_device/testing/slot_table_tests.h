// A test of slot tables in device memory: a replay with other buffers changes nothing else. A
// driver with such tables instantiates it with its Vendor (stand_in_fixture.h), which also has:
//   Recorded(control)   a count of what is recorded or updated for lists
//   Launched(control)   a count of how often recorded lists are given to the device
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_SLOT_TABLE_TESTS_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_SLOT_TABLE_TESTS_H_

#include <utility>
#include <vector>

#include "drivers/common/queued_device/testing/stand_in_fixture.h"

namespace kiln::drivers::testing {

template <typename Vendor>
class SlotTableTest : public StandInFixture<Vendor> {};
TYPED_TEST_SUITE_P(SlotTableTest);

TYPED_TEST_P(SlotTableTest, AReplayWithOtherBuffersWritesTheSlotTableAlone) {
  this->Open();
  constexpr int kLaunches = 1000;
  constexpr int kSlots = 40;
  auto kernel = *this->device().LoadKernel(this->TableImage(2));
  CommandList commands{.num_slots = kSlots, .commands = {}};
  for (int i = 0; i < kLaunches; ++i) {
    const int slot = i % kSlots;
    commands.commands.emplace_back(
        LaunchCommand{kernel.get(), {{(slot + 1) % kSlots, 0, 64}, {slot, 64, 64}}});
  }
  auto list = *this->device().Prepare(std::move(commands));
  const auto buffers = this->ManyZeros(3 * kSlots / 2, 128);
  std::vector<Buffer*> slots = this->Slots(buffers, kSlots);
  const auto copies_for = [&] {
    const int64_t copies = this->control_->copies_run;
    const int64_t kernels = this->control_->kernels_run;
    const int64_t launched = TypeParam::Launched(*this->control_);
    EXPECT_TRUE(this->Run(*list, slots).status.ok()) << this->message();
    EXPECT_EQ(this->control_->kernels_run, kernels + kLaunches);
    EXPECT_EQ(TypeParam::Launched(*this->control_), launched + 1);
    return this->control_->copies_run - copies;
  };
  EXPECT_EQ(copies_for(), 1);
  const int64_t recorded = TypeParam::Recorded(*this->control_);
  EXPECT_EQ(copies_for(), 0);
  for (int i = 0; i < kSlots / 2; ++i) slots[2 * i] = buffers[kSlots + i].get();
  EXPECT_EQ(copies_for(), 1);
  EXPECT_EQ(TypeParam::Recorded(*this->control_), recorded) << "nothing is recorded";
  for (int i = 0; i < kSlots; ++i)
    EXPECT_EQ(this->Read(*buffers[i], 64), i % 2 == 0 ? 50u : 75u) << i;
  for (int i = kSlots; i < 3 * kSlots / 2; ++i) EXPECT_EQ(this->Read(*buffers[i], 64), 25u) << i;
}

REGISTER_TYPED_TEST_SUITE_P(SlotTableTest, AReplayWithOtherBuffersWritesTheSlotTableAlone);

}  // namespace kiln::drivers::testing

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_SLOT_TABLE_TESTS_H_
