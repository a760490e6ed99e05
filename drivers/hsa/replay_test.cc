// Tests of a replay's work on the device: the order of packets, and slots.
#include <utility>
#include <vector>

#include "drivers/hsa/testing/stand_in_fixture.h"

namespace kiln::drivers::hsa {
namespace {

using HsaReplayTest = HsaTest;

TEST_F(HsaReplayTest, KernelsThatNeedNothingOfEachOtherRunSideBySide) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  CommandList commands{.num_slots = 8, .commands = {}};
  for (int turn = 0; turn < 2; ++turn) {
    for (int slot = 0; slot < 8; ++slot) commands.commands.emplace_back(LaunchOf(kernel, slot));
  }
  auto list = *device().Prepare(std::move(commands));
  const auto buffers = ManyZeros(8);
  control_->side_by_side_max = 0;
  const int64_t doorbells = control_->doorbells;
  ASSERT_TRUE(Run(*list, Slots(buffers, 8)).status.ok());
  EXPECT_EQ(control_->side_by_side_max, 8) << "and the second turn waits for the first";
  EXPECT_EQ(control_->doorbells, doorbells + 1) << "for all packets together";
  for (const auto& buffer : buffers) EXPECT_EQ(Read(*buffer), 2u);
}

TEST_F(HsaReplayTest, TablesArgumentsAndSignalsOfFinishedRunsAreReused) {
  Open();
  auto table = *device().LoadKernel(TableImage(1));
  auto plain = *device().LoadKernel(Image(1));
  auto list = Prepare({FillCommand{{0, 0, 64}, 0}, LaunchOf(table), LaunchOf(plain)});
  const auto buffers = ManyZeros(20);
  const int64_t signals = control_->signals_made;
  SubmitForEach(buffers, {list.get()});
  for (const auto& buffer : buffers) EXPECT_EQ(Read(*buffer), 2u);
  const int64_t objects = control_->objects;
  SubmitForEach(buffers, {list.get()});
  EXPECT_LE(control_->objects, objects + 20);
  EXPECT_LE(control_->signals_made, signals + 200);
}

TEST_F(HsaReplayTest, ListsLongerThanTheQueueAreCut) {
  control_->queue_packets_max = 64;
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list = Prepare(std::vector<Command>(1000, LaunchOf(kernel)));
  auto buffer = Zeros();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(Read(*buffer), 3000u);
}

// The commands then have dependencies that their slots do not show.
TEST_F(HsaReplayTest, SlotsThatShareABufferRunOneByOne) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(2));
  const auto launch = [&](int from, int to) {
    return LaunchCommand{kernel.get(), {{from, 0, 64}, {to, 0, 64}}};
  };
  auto list = *device().Prepare({.num_slots = 4, .commands = {launch(0, 1), launch(2, 3)}});
  auto a = Zeros();
  auto b = Zeros();
  control_->side_by_side_max = 0;
  ASSERT_TRUE(Run(*list, {b.get(), a.get(), a.get(), b.get()}).status.ok());
  EXPECT_EQ(control_->side_by_side_max, 1);
}

}  // namespace
}  // namespace kiln::drivers::hsa
