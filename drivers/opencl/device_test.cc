// Tests of kernels that are refused, of replays, and of failing lists;
// drivers/common/queued_device/testing and tests/conformance, also on PoCL, have the rest.
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/common/queued_device/testing/queued_device_tests.h"
#include "drivers/opencl/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::opencl {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using OpenClDeviceTest = OpenClTest;

// CL_MEM_OBJECT_ALLOCATION_FAILURE, CL_INVALID_COMMAND_QUEUE.
constexpr int kAllocationFailure = -4;
constexpr int kInvalidCommandQueue = -36;

TEST_F(OpenClDeviceTest, OneBufferHasALimitOfItsOwn) {
  Open();
  const int64_t bytes_max = (int64_t{1} << 30) / 4;
  const absl::Status status = device().Allocate(bytes_max + 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(bytes_max + 1, " bytes in one buffer")));
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat(bytes_max)));
  // Its size class would be larger than the limit.
  EXPECT_TRUE(device().Allocate(bytes_max - 1).ok());
}

TEST_F(OpenClDeviceTest, KernelsThatDoNotCompileSayWhy) {
  Open();
  KernelImage image = Image(1);
  image.code = "#error";
  const absl::Status status = device().LoadKernel(image).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the kernel mixer cannot be compiled:\nline 1: wrong"));
  EXPECT_LT(status.message().size(), 3000u);
  EXPECT_EQ(BlockThreadsMax(status), std::nullopt);
  // The reason may be too large a block.
  image.block_size = 128;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(image).status()), 64);
}

TEST_F(OpenClDeviceTest, KernelsThatTheDeviceCannotRunAreRefused) {
  Open();
  ExpectRefused([](KernelImage& image) { image.code += image.code; },
                "2 functions marked __kernel");
  ExpectRefused(
      [](KernelImage& image) {
        image.num_arguments = 2;
        image.access.clear();
      },
      "its function takes 1");
  ExpectRefused([](KernelImage& image) { image = Image(127); },
                "takes 127 arguments; the device takes 126");
  ExpectRefused([](KernelImage& image) { image.block_size = 257; }, "the device takes 256");
  ExpectRefused([](KernelImage& image) { image.block_size = 129; },
                "in its built form the device allows 128");
  KernelImage large = Image(1);
  large.block_size = 129;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(large).status()), 128);
  ExpectRefused([](KernelImage& image) { image.shared_bytes = (48 << 10) + 1; },
                "the device has 49152");
  ExpectRefused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
}

TEST_F(OpenClDeviceTest, AReplayWithOtherBuffersWritesTheSlotTableAlone) {
  Open();
  constexpr int kLaunches = 1000;
  constexpr int kSlots = 40;
  auto kernel = *device().LoadKernel(TableImage(2));
  CommandList commands{.num_slots = kSlots, .commands = {}};
  for (int i = 0; i < kLaunches; ++i) {
    commands.commands.emplace_back(
        LaunchCommand{kernel.get(), {{i % kSlots, 0, 64}, {(i + 1) % kSlots, 64, 64}}});
  }
  auto list = *device().Prepare(std::move(commands));
  const auto buffers = ManyZeros(3 * kSlots / 2, 128);
  std::vector<Buffer*> slots = Slots(buffers, kSlots);
  // Returns the number of copies, and of calls that name memory.
  const auto costs = [&] {
    const int64_t set = control_->arguments_set;
    const int64_t made = control_->kernels_made;
    const int64_t copies = control_->copies;
    const int64_t named = control_->memory_named;
    const int64_t launches = control_->launches;
    EXPECT_TRUE(Run(*list, slots).status.ok());
    EXPECT_EQ(control_->launches, launches + kLaunches);
    EXPECT_EQ(control_->arguments_set, set);
    EXPECT_EQ(control_->kernels_made, made);
    return std::pair(static_cast<int>(control_->copies - copies),
                     static_cast<int>(control_->memory_named - named));
  };
  const auto swap_half = [&] {
    for (int i = 0; i < kSlots / 2; ++i) {
      Buffer* const other = buffers[kSlots + i].get();
      slots[2 * i] = slots[2 * i] == other ? buffers[2 * i].get() : other;
    }
  };
  EXPECT_EQ(costs(), std::pair(1, kLaunches));
  EXPECT_EQ(costs(), std::pair(0, 0));
  swap_half();
  EXPECT_EQ(costs(), std::pair(1, kLaunches)) << "buffers that the list has not met";
  for (int i = 0; i < 3; ++i) {
    swap_half();
    EXPECT_EQ(costs(), std::pair(1, 0));
  }
  // Released memory may be reused at an address that a kernel knows.
  ASSERT_TRUE(device().Allocate(240 << 20).ok());
  EXPECT_EQ(costs(), std::pair(0, kLaunches));
}

TEST_F(OpenClDeviceTest, KernelsThatReachAllMemoryAreToldOfNone) {
  control_->reaches_all_memory = true;
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list = Prepare({LaunchOf(kernel)});
  auto buffer = *device().Allocate(64);
  const int64_t named = control_->memory_named;
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(control_->memory_named, named);
}

TEST_F(OpenClDeviceTest, AReplaySetsOnlyTheAddressesThatChanged) {
  Open();
  constexpr int kLaunches = 1000;
  auto kernel = *device().LoadKernel(Image(3));
  LaunchCommand launch{kernel.get(), {{0, 0, 64}, {1, 0, 64}, {2, 64, 64}}};
  CommandList commands{.num_slots = 3, .commands = std::vector<Command>(kLaunches, launch)};
  auto list = *device().Prepare(commands);
  const auto buffers = ManyZeros(4, 128);
  const auto arguments_set = [&](std::vector<int> slots) {
    const int64_t set = control_->arguments_set;
    const int64_t made = control_->kernels_made;
    const int64_t launches = control_->launches;
    EXPECT_TRUE(
        Run(*list, {buffers[slots[0]].get(), buffers[slots[1]].get(), buffers[slots[2]].get()})
            .status.ok());
    EXPECT_EQ(control_->kernels_made, made);
    EXPECT_EQ(control_->launches, launches + kLaunches);
    return control_->arguments_set - set;
  };
  EXPECT_EQ(arguments_set({0, 1, 2}), 3 * kLaunches);
  EXPECT_EQ(arguments_set({0, 1, 2}), 0);
  EXPECT_EQ(arguments_set({0, 3, 2}), kLaunches);
  // Released memory may be reused at an address that a kernel knows.
  ASSERT_TRUE(device().Allocate(240 << 20).ok());
  EXPECT_EQ(arguments_set({0, 3, 2}), 3 * kLaunches);
  EXPECT_EQ(arguments_set({0, 3, 2}), 0);
}

TEST_F(OpenClDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare(std::vector<Command>(3, LaunchOf(kernel)));
  auto buffer = *device().Allocate(64);
  control_->next_launch_refused = kOutOfResources;
  absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot launch the kernel mixer: CL_OUT_OF_RESOURCES"));
  control_->next_launch_fails = kAllocationFailure;
  status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("CL_MEM_OBJECT_ALLOCATION_FAILURE"));
  EXPECT_TRUE(device().Health().ok());
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
}

TEST_F(OpenClDeviceTest, AListEndsWhenNothingOfItRuns) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare(std::vector<Command>(2, LaunchOf(kernel)));
  auto buffer = *device().Allocate(64);
  const int64_t launches = control_->launches;
  control_->launch_gate.Close(/*pass=*/1);
  control_->next_launch_fails = kAllocationFailure;
  absl::Notification ended;
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(device()
                  .Submit(*list, slots, {},
                          [&](SubmitResult result) {
                            EXPECT_FALSE(result.status.ok());
                            ended.Notify();
                          })
                  .ok());
  EXPECT_TRUE(Eventually([&] {
    return ended.HasBeenNotified() || (control_->launch_gate.held() == 1 && control_->waiting == 1);
  }));
  EXPECT_FALSE(ended.HasBeenNotified()) << "while its second launch is held";
  control_->launch_gate.Open();
  ended.WaitForNotification();
  EXPECT_EQ(control_->launches, launches + 2);
}

TEST_F(OpenClDeviceTest, ADeviceThatGoesWhileNobodyUsesItIsNoticed) {
  Open();
  EXPECT_TRUE(device().Health().ok());
  control_->unplugged = true;
  EXPECT_THAT(device().Health().message(), HasSubstr("no longer available"));
  EXPECT_FALSE(device().Revive().ok());
  control_->unplugged = false;
  EXPECT_FALSE(device().Health().ok());
  EXPECT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(OpenClDeviceTest, AnInvalidQueueIsALostDevice) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare({LaunchOf(kernel)});
  auto buffer = *device().Allocate(64);
  control_->next_launch_refused = kInvalidCommandQueue;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device().Health().ok());
}

}  // namespace
}  // namespace kiln::drivers::opencl

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(OpenCl, QueuedDeviceTest, opencl::StandIn);
}  // namespace kiln::drivers::testing
