// Tests of the device's errors and of driver-specific behaviour; tests/conformance has the rest,
// also on PoCL.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
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

TEST_F(OpenClDeviceTest, MemoryThatTheVendorLacksIsNamed) {
  Open();
  control_->out_of_memory = true;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("opencl:0 is out of memory: 1000 bytes"));
  control_->out_of_memory = false;
  EXPECT_TRUE(device().Allocate(1000).ok());
}

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
  const auto refused = [this](auto change, const std::string& why) {
    KernelImage image = Image(1);
    change(image);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  refused([](KernelImage& image) { image.code += image.code; }, "2 functions marked __kernel");
  refused([](KernelImage& image) { image.num_arguments = 2; }, "its function takes 1");
  refused([](KernelImage& image) { image = Image(127); },
          "takes 127 arguments; the device allows 126");
  refused([](KernelImage& image) { image.block_size = 257; }, "the device takes 256");
  refused([](KernelImage& image) { image.block_size = 129; },
          "in its built form the device allows 128");
  KernelImage large = Image(1);
  large.block_size = 129;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(large).status()), 128);
  refused([](KernelImage& image) { image.shared_bytes = (48 << 10) + 1; }, "the device has 49152");
  refused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
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
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 3 * kSlots / 2; ++i) buffers.push_back(*device().Allocate(128));
  std::vector<Buffer*> slots;
  for (int i = 0; i < kSlots; ++i) slots.push_back(buffers[i].get());
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
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
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
  std::vector<std::unique_ptr<Buffer>> buffers;
  for (int i = 0; i < 4; ++i) buffers.push_back(*device().Allocate(128));
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
  auto list = *device().Prepare(
      {.num_slots = 1,
       .commands = std::vector<Command>(3, LaunchCommand{kernel.get(), {{0, 0, 64}}})});
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
  auto list = *device().Prepare(
      {.num_slots = 1,
       .commands = std::vector<Command>(2, LaunchCommand{kernel.get(), {{0, 0, 64}}})});
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

// Otherwise the list could use data that a failed copy did not write, without an error.
TEST_F(OpenClDeviceTest, AListStartsAfterItsCopiesAreReported) {
  Open();
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  const std::string bytes(64, 'a');
  absl::Notification go_on, ended;
  ASSERT_TRUE(device()
                  .StartCopyToDevice(*buffer, 0, bytes,
                                     [&](const absl::Status& status) {
                                       EXPECT_TRUE(status.ok()) << status;
                                       go_on.WaitForNotification();
                                     })
                  .ok());
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(device()
                  .Submit(*fill, slots, {},
                          [&](SubmitResult result) {
                            EXPECT_TRUE(result.status.ok()) << result.status;
                            ended.Notify();
                          })
                  .ok());
  EXPECT_TRUE(Eventually([&] { return ended.HasBeenNotified() || waiting() == 1; }));
  EXPECT_FALSE(ended.HasBeenNotified()) << "while the copy is being reported";
  go_on.Notify();
  EXPECT_TRUE(device().Synchronize().ok());
  EXPECT_TRUE(ended.HasBeenNotified());
}

TEST_F(OpenClDeviceTest, ALostDeviceStaysLost) {
  Open();
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  ASSERT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  control_->lost = true;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(device().Health().message(), HasSubstr("the device is lost"));
  EXPECT_THAT(device().Health().message(), HasSubstr("CL_OUT_OF_RESOURCES"));
  // The device stays lost, even if the library's errors stop.
  control_->lost = false;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Allocate(64).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().LoadKernel(Image(1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().CopyToDevice(*buffer, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable);
  // A new device works.
  buffer = nullptr;
  Open();
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(OpenClDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const CommandList commands{.num_slots = 1,
                             .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}};
  auto list = *device().Prepare(commands);
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = true;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device().Revive().ok());
  EXPECT_FALSE(device().Health().ok());
  control_->lost = false;
  EXPECT_FALSE(device().Health().ok());
  ASSERT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
  // Old objects are refused, new ones work.
  auto fresh = *device().Allocate(64);
  Buffer* slots[] = {fresh.get()};
  EXPECT_THAT(device().Submit(*list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(device().CopyToDevice(*buffer, 0, "abc").message(), HasSubstr("was lost with it"));
  EXPECT_FALSE(device().Prepare(commands).ok());
  auto kernel_again = *device().LoadKernel(Image(1));
  auto again = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel_again.get(), {{0, 0, 64}}}}});
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  EXPECT_TRUE(device().CopyToDevice(*fresh, 0, "abc").ok());
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
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_refused = kInvalidCommandQueue;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(device().Health().ok());
}

TEST_F(OpenClDeviceTest, AListThatFailsAbortsItsGroup) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}, SignalCommand{0}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = kOutOfResources;
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr("CL_OUT_OF_RESOURCES"));
}

// Device 1 waits for device 0, which then waits for device 1.
TEST_F(OpenClDeviceTest, DevicesWaitForEachOther) {
  control_->gpus = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto first = *devices_[0]->Prepare({.num_slots = 1,
                                      .commands = {FillCommand{{0, 0, 64}, 1}, SignalCommand{0},
                                                   WaitCommand{1}, FillCommand{{0, 0, 64}, 2}}});
  auto second = *devices_[1]->Prepare(
      {.num_slots = 1, .commands = {WaitCommand{0}, FillCommand{{0, 0, 64}, 3}, SignalCommand{1}}});
  auto a = *devices_[0]->Allocate(64);
  auto b = *devices_[1]->Allocate(64);
  Buffer* slots_a[] = {a.get()};
  Buffer* slots_b[] = {b.get()};
  for (int i = 0; i < 100; ++i) {
    auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
    const SubmitOptions options{.time_commands = i % 2 == 0, .group = group};
    const auto done = [](SubmitResult result) { EXPECT_TRUE(result.status.ok()) << result.status; };
    ASSERT_TRUE(devices_[1]->Submit(*second, slots_b, options, done).ok());
    ASSERT_TRUE(devices_[0]->Submit(*first, slots_a, options, done).ok());
  }
  std::string bytes(64, '\0');
  ASSERT_TRUE(devices_[0]->CopyToHost(*a, 0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(64, '\2'));
  ASSERT_TRUE(devices_[1]->CopyToHost(*b, 0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(64, '\3'));
}

TEST_F(OpenClDeviceTest, OtherDevicesBuffersAreRefused) {
  control_->gpus = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto other = *devices_[1]->Allocate(64);
  Buffer* slots[] = {other.get()};
  const absl::Status status =
      device().Submit(*list, slots, {}, [](SubmitResult) { ADD_FAILURE() << "done was called"; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("not one of opencl:0"));
}

TEST_F(OpenClDeviceTest, BuffersAndListsMayOutliveTheirDevice) {
  Open();
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  devices_.clear();
  EXPECT_GT(control_->objects, 0);
  list = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, 0);
}

}  // namespace
}  // namespace kiln::drivers::opencl
