// Tests of a replay's work on the device: graphs with the right order, and slots.
#include <utility>
#include <vector>

#include "drivers/common/queued_device/testing/slot_table_tests.h"
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

using CudaReplayTest = CudaTest;

TEST_F(CudaReplayTest, AListIsOneGraph) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare({FillCommand{{0, 0, 64}, 0}, LaunchOf(kernel), LaunchOf(kernel)});
  auto buffer = *device().Allocate(64);
  const int64_t graphs = control_->graphs_launched;
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(control_->graphs_launched, graphs + 20);
}

TEST_F(CudaReplayTest, SubmissionsInFlightUpdateTheirFills) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count = LaunchOf(kernel);
  auto list = Prepare({FillCommand{{0, 0, 64}, 0}, count, count, count});
  auto one = Prepare({count});
  const auto buffers = ManyZeros(20);
  const int64_t updated = control_->graph_nodes_updated;
  SubmitForEach(buffers, {list.get(), one.get()});
  for (const auto& buffer : buffers) EXPECT_EQ(Read(*buffer), 4u);
  EXPECT_EQ(control_->graph_nodes_updated, updated + 19) << "the fills";
}

TEST_F(CudaReplayTest, AReplaySetsOnlyTheAddressesThatChanged) {
  Open();
  constexpr int kLaunches = 100;
  auto kernel = *device().LoadKernel(Image(1));
  CommandList commands{.num_slots = kLaunches, .commands = {}};
  for (int i = 0; i < kLaunches; ++i) commands.commands.emplace_back(LaunchOf(kernel, i));
  auto list = *device().Prepare(std::move(commands));
  const auto buffers = ManyZeros(kLaunches + 1);
  std::vector<Buffer*> slots = Slots(buffers, kLaunches);
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

}  // namespace
}  // namespace kiln::drivers::cuda

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, SlotTableTest, cuda::StandIn);
}  // namespace kiln::drivers::testing
