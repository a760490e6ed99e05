// Tests of a replay's work on the device: graphs with the right order, and slots.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cuda/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::cuda {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using CudaReplayTest = CudaTest;

// Independent commands may run in any order, dependent ones may not.
TEST_F(CudaReplayTest, AGraphKeepsTheOrderThatMatters) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 3,
       .commands = {FillCommand{{0, 0, 64}, 0}, count, count, CopyCommand{{0, 0, 64}, {1, 0, 64}},
                    count, CopyCommand{{0, 0, 64}, {2, 0, 64}}}});
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3; ++i) buffers.push_back(*device().Allocate(64));
  const int64_t graphs = control_->graphs_launched;
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run(*list, {buffers[0].get(), buffers[1].get(), buffers[2].get()}).status.ok());
    EXPECT_EQ(ReadFirst(*buffers[1]), 2u);
    EXPECT_EQ(ReadFirst(*buffers[2]), 3u);
  }
  EXPECT_EQ(control_->graphs_launched, graphs + 20);
}

TEST_F(CudaReplayTest, AReplayWithOtherBuffersWritesTheSlotTableAlone) {
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
  for (int i = 0; i < 3 * kSlots / 2; ++i) {
    buffers.push_back(*device().Allocate(128));
    ASSERT_TRUE(device().CopyToDevice(*buffers.back(), 0, std::string(128, '\0')).ok());
  }
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
  const int64_t added = control_->graph_nodes_added;
  const int64_t updated = control_->graph_nodes_updated;
  EXPECT_EQ(copies_for(), 0);
  for (int i = 0; i < kSlots / 2; ++i) slots[2 * i] = buffers[kSlots + i].get();
  EXPECT_EQ(copies_for(), 1);
  EXPECT_EQ(control_->graph_nodes_added, added);
  EXPECT_EQ(control_->graph_nodes_updated, updated);
  std::vector<uint32_t> counts;
  for (const auto& buffer : buffers) {
    uint32_t count = 0;
    ASSERT_TRUE(
        device().CopyToHost(*buffer, 64, {reinterpret_cast<char*>(&count), sizeof(count)}).ok());
    counts.push_back(count);
  }
  for (int i = 0; i < kSlots; ++i) EXPECT_EQ(counts[i], i % 2 == 0 ? 50u : 75u) << i;
  for (int i = kSlots; i < 3 * kSlots / 2; ++i) EXPECT_EQ(counts[i], 25u) << i;
}

// Each submission has its own pending table while others run before it.
TEST_F(CudaReplayTest, SubmissionsInFlightKeepTheirSlots) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 0}, count, count, count}});
  auto one = *device().Prepare({.num_slots = 1, .commands = {count}});
  control_->launch_gate.Close();
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(*device().Allocate(64));
  const int64_t updated = control_->graph_nodes_updated;
  for (const auto& buffer : buffers) {
    Buffer* slots[] = {buffer.get()};
    for (PreparedList* next : {list.get(), one.get()}) {
      const absl::Status status = device().Submit(*next, slots, {}, [](SubmitResult result) {
        EXPECT_TRUE(result.status.ok()) << result.status;
      });
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  // The maximum number of lists is in flight, and the next one waits for one of them.
  EXPECT_TRUE(Eventually([&] { return waiting() == 1; }));
  control_->launch_gate.Open();
  ASSERT_TRUE(device().Synchronize().ok());
  for (const auto& buffer : buffers) EXPECT_EQ(ReadFirst(*buffer), 4u);
  EXPECT_EQ(control_->graph_nodes_updated, updated + 19) << "the fills";
}

TEST_F(CudaReplayTest, SlotsBeyondATableAreRefused) {
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

TEST_F(CudaReplayTest, AReplaySetsOnlyTheAddressesThatChanged) {
  Open();
  constexpr int kLaunches = 100;
  auto kernel = *device().LoadKernel(Image(1));
  CommandList commands{.num_slots = kLaunches, .commands = {}};
  for (int i = 0; i < kLaunches; ++i)
    commands.commands.emplace_back(LaunchCommand{kernel.get(), {{i, 0, 64}}});
  auto list = *device().Prepare(std::move(commands));
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i <= kLaunches; ++i) buffers.push_back(*device().Allocate(64));
  std::vector<Buffer*> slots;
  for (int i = 0; i < kLaunches; ++i) slots.push_back(buffers[i].get());
  const int64_t added = control_->graph_nodes_added;
  const auto nodes_set = [&] {
    const int64_t set = control_->graph_nodes_updated;
    const int64_t kernels = control_->kernels_run;
    EXPECT_TRUE(Run(*list, slots).status.ok());
    EXPECT_EQ(control_->kernels_run, kernels + kLaunches);
    EXPECT_EQ(control_->graph_nodes_added, added + kLaunches);
    return control_->graph_nodes_updated - set;
  };
  EXPECT_EQ(nodes_set(), 0);
  EXPECT_EQ(nodes_set(), 0);
  slots[7] = buffers[kLaunches].get();
  EXPECT_EQ(nodes_set(), 1);
  EXPECT_EQ(nodes_set(), 0);
}

// The commands then have dependencies that their slots do not show.
TEST_F(CudaReplayTest, SlotsThatShareABufferKeepTheListsOrder) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 3,
       .commands = {FillCommand{{0, 0, 64}, 0}, LaunchCommand{kernel.get(), {{1, 0, 64}}},
                    CopyCommand{{0, 0, 64}, {2, 0, 64}}}});
  auto a = *device().Allocate(64);
  auto b = *device().Allocate(64);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Run(*list, {a.get(), a.get(), b.get()}).status.ok());
    EXPECT_EQ(ReadFirst(*b), 1u);
  }
}

}  // namespace
}  // namespace kiln::drivers::cuda
