// Tests of a replay's work: lists closed once, the right order, and slots.
#include <utility>
#include <vector>

#include "drivers/common/queued_device/testing/slot_table_tests.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"

namespace kiln::drivers::level_zero {
namespace {

using LevelZeroReplayTest = LevelZeroTest;

TEST_F(LevelZeroReplayTest, BarriersStandWhereSomethingWaits) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const auto count = [&](int slot) { return LaunchOf(kernel, slot); };
  auto list = *device().Prepare({.num_slots = 3,
                                 .commands = {count(0), count(1), count(2),  // at once
                                              count(0), count(1),            // after those
                                              count(2), count(0)}});
  const auto buffers = ManyZeros(3);
  const int64_t appended = control_->commands_appended;
  ASSERT_TRUE(Run(*list, Slots(buffers, 3)).status.ok());
  EXPECT_EQ(control_->commands_appended, appended + 7 + 3);
  EXPECT_EQ(Read(*buffers[0]), 3u);
  EXPECT_EQ(Read(*buffers[2]), 2u);
}

TEST_F(LevelZeroReplayTest, ThereAreNoMoreRecordingsThanListsInFlight) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list = Prepare(std::vector<Command>(3, LaunchOf(kernel)));
  const auto buffers = ManyZeros(20);
  const int64_t appended = control_->commands_appended;
  SubmitForEach(buffers, {list.get()});
  for (const auto& buffer : buffers) EXPECT_EQ(Read(*buffer), 3u);
  // Three launches with barriers, and the copy of the table; two copies to read each buffer.
  EXPECT_LE(control_->commands_appended, appended + 4 * 7 + 2 * 20);
}

TEST_F(LevelZeroReplayTest, OnlyCommandsWithOtherAddressesAreRecordedAgain) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  CommandList commands{.num_slots = 2, .commands = std::vector<Command>(100, LaunchOf(kernel))};
  commands.commands.emplace_back(CopyCommand{{0, 0, 64}, {1, 0, 64}});
  auto list = *device().Prepare(std::move(commands));
  auto from = Zeros();
  auto to = Zeros();
  auto other = Zeros();
  ASSERT_TRUE(Run(*list, {from.get(), to.get()}).status.ok());
  const int64_t appended = control_->commands_appended;
  ASSERT_TRUE(Run(*list, {from.get(), to.get()}).status.ok());
  EXPECT_EQ(control_->commands_appended, appended);
  ASSERT_TRUE(Run(*list, {from.get(), other.get()}).status.ok());
  EXPECT_EQ(control_->commands_appended, appended + 2) << "a barrier and the copy";
  EXPECT_EQ(Read(*to), 200u);
  EXPECT_EQ(Read(*other), 300u);
}

TEST_F(LevelZeroReplayTest, AnEmptyListEnds) {
  Open();
  auto list = Prepare({FillCommand{{0, 0, 0}, 1}});
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_TRUE(Run(*list, {buffer.get()}, {.time_commands = true}).status.ok());
}

}  // namespace
}  // namespace kiln::drivers::level_zero

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(LevelZero, SlotTableTest, level_zero::StandIn);
}  // namespace kiln::drivers::testing
