// Tests of a replay's work: lists closed once, the right order, and slots.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/level_zero/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::level_zero {
namespace {

using ::kiln::testing::Eventually;
using LevelZeroReplayTest = LevelZeroTest;

// The stand-in runs commands with no barrier between them in any order.
TEST_F(LevelZeroReplayTest, AListKeepsTheOrderThatMatters) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 3,
       .commands = {FillCommand{{0, 0, 64}, 0}, count, count, CopyCommand{{0, 0, 64}, {1, 0, 64}},
                    count, CopyCommand{{0, 0, 64}, {2, 0, 64}}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(*device().Allocate(64));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run(*list, {buffers[0].get(), buffers[1].get(), buffers[2].get()}).status.ok());
    EXPECT_EQ(Read(*buffers[1]), 2u);
    EXPECT_EQ(Read(*buffers[2]), 3u);
  }
}

TEST_F(LevelZeroReplayTest, BarriersStandWhereSomethingWaits) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const auto count = [&](int slot) { return LaunchCommand{kernel.get(), {{slot, 0, 64}}}; };
  auto list = *device().Prepare({.num_slots = 3,
                                 .commands = {count(0), count(1), count(2),  // at once
                                              count(0), count(1),            // after those
                                              count(2), count(0)}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(Zeros(64));
  const std::vector<Buffer*> slots = {buffers[0].get(), buffers[1].get(), buffers[2].get()};
  const int64_t appended = control_->commands_appended;
  ASSERT_TRUE(Run(*list, slots).status.ok());
  EXPECT_EQ(control_->commands_appended, appended + 7 + 3);
  EXPECT_EQ(Read(*buffers[0]), 3u);
  EXPECT_EQ(Read(*buffers[2]), 2u);
}

TEST_F(LevelZeroReplayTest, AReplayWithOtherBuffersWritesTheSlotTableAlone) {
  Open();
  constexpr int kLaunches = 1000;
  constexpr int kSlots = 40;
  auto kernel = *device().LoadKernel(TableImage(2));
  CommandList commands{.num_slots = kSlots, .commands = {}};
  for (int i = 0; i < kLaunches; ++i) {
    const int slot = i % kSlots;
    commands.commands.emplace_back(
        LaunchCommand{kernel.get(), {{(slot + 1) % kSlots, 0, 64}, {slot, 64, 64}}});
  }
  auto list = *device().Prepare(std::move(commands));
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3 * kSlots / 2; ++i) buffers.push_back(Zeros(128));
  std::vector<Buffer*> slots;
  for (int i = 0; i < kSlots; ++i) slots.push_back(buffers[i].get());
  const auto copies_for = [&] {
    const int64_t copies = control_->copies_run;
    const int64_t kernels = control_->kernels_run;
    EXPECT_TRUE(Run(*list, slots).status.ok()) << message_();
    EXPECT_EQ(control_->kernels_run, kernels + kLaunches);
    return control_->copies_run - copies;
  };
  EXPECT_EQ(copies_for(), 1);
  const int64_t appended = control_->commands_appended;
  const int64_t set = control_->arguments_set;
  const int64_t executions = control_->executions;
  EXPECT_EQ(copies_for(), 0);
  for (int i = 0; i < kSlots / 2; ++i) slots[2 * i] = buffers[kSlots + i].get();
  EXPECT_EQ(copies_for(), 1);
  EXPECT_EQ(control_->commands_appended, appended) << "nothing is recorded";
  EXPECT_EQ(control_->arguments_set, set);
  EXPECT_EQ(control_->executions, executions + 2);
  for (int i = 0; i < kSlots; ++i) EXPECT_EQ(Read(*buffers[i], 64), i % 2 == 0 ? 50u : 75u) << i;
  for (int i = kSlots; i < 3 * kSlots / 2; ++i) EXPECT_EQ(Read(*buffers[i], 64), 25u) << i;
}

// Each submission has its own recording and table while others before it run; there are never more
// recordings than lists in flight.
TEST_F(LevelZeroReplayTest, SubmissionsInFlightKeepTheirSlots) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {count, count, count}});
  control_->gate.Close();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(Zeros(64));
  const int64_t appended = control_->commands_appended;
  for (const auto& buffer : buffers) {
    Buffer* slots[] = {buffer.get()};
    const absl::Status status = device().Submit(*list, slots, {}, [](SubmitResult result) {
      EXPECT_TRUE(result.status.ok()) << result.status;
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  // The maximum number of lists is in flight, and the next one waits for one of them.
  EXPECT_TRUE(Eventually([&] { return waiting() == 1; }));
  control_->gate.Open();
  ASSERT_TRUE(device().Synchronize().ok());
  for (const auto& buffer : buffers) EXPECT_EQ(Read(*buffer), 3u);
  // Three launches with barriers, and the copy of the table.
  EXPECT_LE(control_->commands_appended, appended + 4 * 7 + 2 * 20);
}

TEST_F(LevelZeroReplayTest, OnlyCommandsWithOtherAddressesAreRecordedAgain) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  CommandList commands{.num_slots = 2, .commands = std::vector<Command>(100, count)};
  commands.commands.emplace_back(CopyCommand{{0, 0, 64}, {1, 0, 64}});
  auto list = *device().Prepare(std::move(commands));
  auto from = Zeros(64);
  auto to = Zeros(64);
  auto other = Zeros(64);
  ASSERT_TRUE(Run(*list, {from.get(), to.get()}).status.ok());
  const int64_t appended = control_->commands_appended;
  ASSERT_TRUE(Run(*list, {from.get(), to.get()}).status.ok());
  EXPECT_EQ(control_->commands_appended, appended);
  ASSERT_TRUE(Run(*list, {from.get(), other.get()}).status.ok());
  EXPECT_EQ(control_->commands_appended, appended + 2) << "a barrier and the copy";
  EXPECT_EQ(Read(*to), 200u);
  EXPECT_EQ(Read(*other), 300u);
}

// The commands then have dependencies that their slots do not show.
TEST_F(LevelZeroReplayTest, SlotsThatShareABufferKeepTheListsOrder) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list =
      *device().Prepare({.num_slots = 3,
                         .commands = {FillCommand{{0, 0, 64}, 0}, FillCommand{{1, 0, 64}, 1},
                                      CopyCommand{{0, 0, 64}, {2, 0, 64}},
                                      LaunchCommand{kernel.get(), {{2, 0, 64}}}}});
  auto a = *device().Allocate(64);
  auto b = *device().Allocate(64);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run(*list, {a.get(), a.get(), b.get()}).status.ok());
    EXPECT_EQ(Read(*b), 0x01010102u);
  }
}

TEST_F(LevelZeroReplayTest, AnEmptyListEnds) {
  Open();
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 0}, 1}}});
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_TRUE(Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr}).status.ok());
}

}  // namespace
}  // namespace kiln::drivers::level_zero
