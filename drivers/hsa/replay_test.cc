// Tests of a replay's work on the device: the order of packets, and slots.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/hsa/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::hsa {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using HsaReplayTest = HsaTest;

// The stand-in runs packets without a barrier bit between them in reverse order.
TEST_F(HsaReplayTest, PacketsKeepTheOrderThatMatters) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 3,
       .commands = {FillCommand{{0, 0, 64}, 0}, count, count, CopyCommand{{0, 0, 64}, {1, 0, 64}},
                    count, CopyCommand{{0, 0, 64}, {2, 0, 64}}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(*device().Allocate(64));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run(*list, {buffers[0].get(), buffers[1].get(), buffers[2].get()}).status.ok());
    EXPECT_EQ(ReadFirst(*buffers[1]), 2u);
    EXPECT_EQ(ReadFirst(*buffers[2]), 3u);
  }
}

TEST_F(HsaReplayTest, KernelsThatNeedNothingOfEachOtherRunSideBySide) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  CommandList commands{.num_slots = 8, .commands = {}};
  for (int turn = 0; turn < 2; ++turn) {
    for (int slot = 0; slot < 8; ++slot)
      commands.commands.emplace_back(LaunchCommand{kernel.get(), {{slot, 0, 64}}});
  }
  auto list = *device().Prepare(std::move(commands));
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<Buffer*> slots;
  for (int i = 0; i < 8; ++i) {
    buffers.push_back(*device().Allocate(64));
    Clear(*buffers.back());
    slots.push_back(buffers.back().get());
  }
  control_->side_by_side_max = 0;
  const int64_t doorbells = control_->doorbells;
  ASSERT_TRUE(Run(*list, slots).status.ok());
  EXPECT_EQ(control_->side_by_side_max, 8) << "and the second turn waits for the first";
  EXPECT_EQ(control_->doorbells, doorbells + 1) << "for all packets together";
  for (const auto& buffer : buffers) EXPECT_EQ(ReadFirst(*buffer), 2u);
}

// Each submission has its own table and arguments while others before it run; finished submissions'
// are reused.
TEST_F(HsaReplayTest, SubmissionsInFlightKeepTheirSlots) {
  Open();
  auto table = *device().LoadKernel(TableImage(1));
  auto plain = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1,
       .commands = {FillCommand{{0, 0, 64}, 0}, LaunchCommand{table.get(), {{0, 0, 64}}},
                    LaunchCommand{plain.get(), {{0, 0, 64}}}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(*device().Allocate(64));
  const auto submit_all = [&] {
    control_->launch_gate.Close();
    for (const auto& buffer : buffers) {
      Buffer* slots[] = {buffer.get()};
      const absl::Status status = device().Submit(*list, slots, {}, [](SubmitResult result) {
        EXPECT_TRUE(result.status.ok()) << result.status;
      });
      ASSERT_TRUE(status.ok()) << status;
    }
    // The maximum number of lists is in flight, and the next one waits for one of them.
    EXPECT_TRUE(Eventually([&] { return waiting() == 1; }));
    control_->launch_gate.Open();
    ASSERT_TRUE(device().Synchronize().ok());
  };
  submit_all();
  for (const auto& buffer : buffers) EXPECT_EQ(ReadFirst(*buffer), 2u);
  const int64_t objects = control_->objects;
  submit_all();
  EXPECT_LE(control_->objects, objects + 20) << "signals and arguments come back";
  EXPECT_LE(control_->signals_made, 200);
}

TEST_F(HsaReplayTest, ListsLongerThanTheQueueAreCut) {
  control_->queue_packets_max = 64;
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  CommandList commands{.num_slots = 1, .commands = {}};
  for (int i = 0; i < 1000; ++i)
    commands.commands.emplace_back(LaunchCommand{kernel.get(), {{0, 0, 64}}});
  auto list = *device().Prepare(std::move(commands));
  auto buffer = *device().Allocate(64);
  Clear(*buffer);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*buffer), 3000u);
}

// The commands then have dependencies that their slots do not show.
TEST_F(HsaReplayTest, SlotsThatShareABufferKeepTheListsOrder) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(2));
  const auto launch = [&](int from, int to) {
    return LaunchCommand{kernel.get(), {{from, 0, 64}, {to, 0, 64}}};
  };
  auto list = *device().Prepare({.num_slots = 4, .commands = {launch(0, 1), launch(2, 3)}});
  auto a = *device().Allocate(64);
  auto b = *device().Allocate(64);
  Clear(*a);
  Clear(*b);
  control_->side_by_side_max = 0;
  ASSERT_TRUE(Run(*list, {b.get(), a.get(), a.get(), b.get()}).status.ok());
  EXPECT_EQ(control_->side_by_side_max, 1);
}

TEST_F(HsaReplayTest, SlotsBeyondATableAreRefused) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const absl::Status status =
      device()
          .Prepare({.num_slots = kTableSlotsMax + 1,
                    .commands = {LaunchCommand{kernel.get(), {{kTableSlotsMax, 0, 64}}}}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the kernel counter takes a slot table"));
}

}  // namespace
}  // namespace kiln::drivers::hsa
