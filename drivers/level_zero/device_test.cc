// Tests of the device's errors, of failing lists, and of copies; tests/conformance has the rest.
#include <atomic>
#include <string>

#include "absl/synchronization/notification.h"
#include "drivers/level_zero/api_types.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::level_zero {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using LevelZeroDeviceTest = LevelZeroTest;

TEST_F(LevelZeroDeviceTest, MemoryThatTheVendorLacksIsNamed) {
  Open();
  control_->out_of_memory = true;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("level_zero:0 is out of memory: 1000 bytes"));
  control_->out_of_memory = false;
  EXPECT_TRUE(device().Allocate(1000).ok());
}

TEST_F(LevelZeroDeviceTest, OneBufferHasALimitOfItsOwn) {
  control_->allocation_bytes_max = 1 << 20;
  // Copies go through host memory, which the limit does not affect.
  Open();
  const absl::Status status = device().Allocate((1 << 20) + 1).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("1048577 bytes in one buffer"));
  // Its size class would be larger than the limit.
  EXPECT_TRUE(device().Allocate((1 << 20) - 1).ok());
}

TEST_F(LevelZeroDeviceTest, KernelsThatDoNotBuildSayWhy) {
  Open();
  KernelImage image = Image(1);
  control_->next_build_fails = true;
  const absl::Status status = device().LoadKernel(image).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the kernel counter cannot be built:\nline 1: wrong"));
  EXPECT_EQ(BlockThreadsMax(status), std::nullopt);
  // The reason may be too large a block.
  image.block_size = 128;
  control_->next_build_fails = true;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(image).status()), 64);
  image.code = "no module";
  EXPECT_FALSE(device().LoadKernel(image).ok());
}

TEST_F(LevelZeroDeviceTest, KernelsThatTheDeviceCannotRunAreRefused) {
  Open();
  const auto refused = [this](auto change, const std::string& why) {
    KernelImage image = Image(1);
    change(image);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  refused([](KernelImage& image) { image.code.clear(); }, "has no code");
  refused(
      [](KernelImage& image) {
        image.num_arguments = 2;
        image.access.clear();
      },
      "its function takes 1");
  refused([](KernelImage& image) { image = TableImage(255); },
          "takes 255 arguments; the device allows 254");
  refused([](KernelImage& image) { image.block_size = 1025; }, "the device takes 1024");
  refused([](KernelImage& image) { image.code = Spirv(1, false, 32); },
          "declares blocks of 1 threads, but its function needs 32");
  refused([](KernelImage& image) { image.shared_bytes = (64 << 10) + 1; }, "the device has 65536");
  refused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  refused([](KernelImage& image) { image.grid_size = int64_t{1} << 31; }, "2147483648 blocks");
  control_->block_threads_max = 128;
  KernelImage large = Image(1);
  large.block_size = 129;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(large).status()), 128);
}

TEST_F(LevelZeroDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {launch, launch}});
  auto buffer = Zeros(64);
  control_->next_append_refused = ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
  absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot launch the kernel counter: ZE_RESULT_ERROR_OUT"));
  control_->next_execution_refused = ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY;
  status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot execute a command list"));
  EXPECT_TRUE(device().Health().ok());
  // The table whose update failed is written now.
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(Read(*buffer), 2u);
}

// Otherwise the list could use data that a failed copy did not write, without an error.
TEST_F(LevelZeroDeviceTest, AListStartsAfterItsCopiesAreReported) {
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

TEST_F(LevelZeroDeviceTest, CopiesRunBesideLists) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
  auto used = Zeros(64);
  auto other = Zeros(64);
  std::atomic<bool> has_copied = false;
  std::string bytes(64, 'x');
  control_->gate.Close();
  Buffer* slots[] = {used.get()};
  EXPECT_TRUE(device().Submit(*list, slots, {}, [](SubmitResult) {}).ok());
  EXPECT_TRUE(Eventually([&] { return control_->gate.held() == 1; }));
  EXPECT_TRUE(device()
                  .StartCopyToHost(*other, 0, absl::MakeSpan(bytes),
                                   [&](const absl::Status& status) {
                                     EXPECT_TRUE(status.ok()) << status;
                                     has_copied = true;
                                   })
                  .ok());
  EXPECT_TRUE(Eventually([&] { return has_copied.load(); }));
  control_->gate.Open();
  EXPECT_TRUE(device().Synchronize().ok());
}

TEST_F(LevelZeroDeviceTest, AListThatFailsAbortsItsGroup) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}, SignalCommand{0}}});
  auto buffer = *device().Allocate(64);
  control_->next_execution_refused = ZE_RESULT_ERROR_UNKNOWN;
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr("ZE_RESULT_ERROR_UNKNOWN"));
}

TEST_F(LevelZeroDeviceTest, CommandsAreTimedOneByOne) {
  control_->time.Simulate(/*launch_milliseconds=*/20);
  Open({.now = [this] {
    return SteadyTime(std::chrono::nanoseconds(control_->time.Nanoseconds()));
  }});
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {launch, FillCommand{{0, 0, 0}, 1}, launch}});
  auto buffer = Zeros(64);
  for (int i = 0; i < 2; ++i) {
    const SubmitResult result =
        Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr});
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.command_seconds.size(), 3u);
    EXPECT_NEAR(result.command_seconds[0], 0.02, 1e-6);
    EXPECT_EQ(result.command_seconds[1], 0);
    EXPECT_NEAR(result.command_seconds[2], 0.02, 1e-6);
    EXPECT_NEAR(result.seconds, 0.04, 1e-6);
  }
  EXPECT_EQ(Read(*buffer), 4u);
}

// Copied in pieces, of which the last is shorter.
TEST_F(LevelZeroDeviceTest, LargeCopiesArriveWhole) {
  for (const bool copy_queues : {true, false}) {
    devices_.clear();
    control_->copy_queues = copy_queues;
    Open();
    const size_t size = (13 << 20) + 5;
    auto buffer = *device().Allocate(static_cast<int64_t>(size));
    std::string sent(size, '\0');
    for (size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 2654435761u >> 11);
    ASSERT_TRUE(device().CopyToDevice(*buffer, 0, sent).ok());
    std::string back(size, '\0');
    ASSERT_TRUE(device().CopyToHost(*buffer, 0, absl::MakeSpan(back)).ok());
    EXPECT_TRUE(back == sent);
  }
}

// Device 1 waits for device 0, which then waits for device 1.
TEST_F(LevelZeroDeviceTest, DevicesWaitForEachOther) {
  control_->devices = 2;
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
  for (int i = 0; i < 50; ++i) {
    auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
    const SubmitOptions options{.time_commands = i % 2 == 0, .group = group};
    const auto done = [](SubmitResult result) { EXPECT_TRUE(result.status.ok()) << result.status; };
    ASSERT_TRUE(devices_[1]->Submit(*second, slots_b, options, done).ok());
    ASSERT_TRUE(devices_[0]->Submit(*first, slots_a, options, done).ok());
  }
  EXPECT_EQ(Read(*a), 0x02020202u);
  std::string bytes(64, '\0');
  ASSERT_TRUE(devices_[1]->CopyToHost(*b, 0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(64, '\3'));
}

TEST_F(LevelZeroDeviceTest, OtherDevicesBuffersAreRefused) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto other = *devices_[1]->Allocate(64);
  Buffer* slots[] = {other.get()};
  const absl::Status status =
      device().Submit(*list, slots, {}, [](SubmitResult) { ADD_FAILURE() << "done was called"; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("not one of level_zero:0"));
}

TEST_F(LevelZeroDeviceTest, BuffersAndListsMayOutliveTheirDevice) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {launch, launch}});
  auto buffer = Zeros(64);
  ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  devices_.clear();
  EXPECT_GT(control_->objects, 0);
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, 0);
}

}  // namespace
}  // namespace kiln::drivers::level_zero
