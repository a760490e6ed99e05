// Tests of the device's errors, of failing lists, and of copies; tests/conformance has the rest.
#include <string>

#include "absl/synchronization/notification.h"
#include "drivers/cuda/api.h"
#include "drivers/cuda/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::cuda {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using CudaDeviceTest = CudaTest;

TEST_F(CudaDeviceTest, MemoryThatTheVendorLacksIsNamed) {
  Open();
  control_->out_of_memory = true;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cuda:0 is out of memory: 1000 bytes"));
  control_->out_of_memory = false;
  EXPECT_TRUE(device().Allocate(1000).ok());
}

TEST_F(CudaDeviceTest, KernelsThatDoNotAssembleSayWhy) {
  Open();
  KernelImage image = Image(1);
  image.code += "nonsense\n";
  const absl::Status status = device().LoadKernel(image).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("the kernel counter cannot be assembled: CUDA_ERROR_"));
  EXPECT_LT(status.message().size(), 3000u);
}

TEST_F(CudaDeviceTest, KernelsThatTheDeviceCannotRunAreRefused) {
  Open();
  const auto refused = [this](auto change, const std::string& why) {
    KernelImage image = Image(1);
    change(image);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(), HasSubstr(why));
  };
  refused([](KernelImage& image) { image.code.clear(); }, "has no code");
  refused([](KernelImage& image) { image.block_size = 1025; }, "the device takes 1024");
  refused([](KernelImage& image) { image.shared_bytes = (48 << 10) + 1; }, "the device has 49152");
  refused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  refused([](KernelImage& image) { image.grid_size = int64_t{1} << 31; }, "2^31 - 1");
  EXPECT_TRUE(device().LoadKernel(TableImage(510)).ok());
  refused([](KernelImage& image) { image = TableImage(511); },
          "takes 511 arguments; the device takes 510");
}

TEST_F(CudaDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto one = *device().Prepare({.num_slots = 1, .commands = {launch}});
  auto many = *device().Prepare({.num_slots = 1, .commands = {launch, launch, launch}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_refused = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  absl::Status status = Run(*one, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot launch the kernel counter: CUDA_ERROR_LAUNCH"));
  control_->next_launch_refused = CUDA_ERROR_OUT_OF_MEMORY;
  status = Run(*many, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot launch a graph: CUDA_ERROR_OUT_OF_MEMORY"));
  EXPECT_TRUE(device().Health().ok());
  EXPECT_TRUE(Run(*one, {buffer.get()}).status.ok());
  EXPECT_TRUE(Run(*many, {buffer.get()}).status.ok());
}

// Otherwise the list could use data that a failed copy did not write, without an error.
TEST_F(CudaDeviceTest, AListStartsAfterItsCopiesAreReported) {
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

TEST_F(CudaDeviceTest, AListThatFailsAbortsItsGroup) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}, SignalCommand{0}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = CUDA_ERROR_LAUNCH_FAILED;
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
}

TEST_F(CudaDeviceTest, CommandsAreTimedOneByOne) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {launch, FillCommand{{0, 0, 0}, 1}, launch}});
  auto buffer = *device().Allocate(64);
  control_->time.Simulate(/*launch_milliseconds=*/20);
  const SubmitResult result = Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.command_seconds.size(), 3u);
  EXPECT_NEAR(result.command_seconds[0], 0.02, 1e-6);
  EXPECT_EQ(result.command_seconds[1], 0);
  EXPECT_NEAR(result.command_seconds[2], 0.02, 1e-6);
  EXPECT_NEAR(result.seconds, 0.04, 1e-6);
}

// Copied in pieces, of which the last is shorter.
TEST_F(CudaDeviceTest, LargeCopiesArriveWhole) {
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

// A node of a CUDA graph copies less than 2 GiB.
TEST_F(CudaDeviceTest, CopiesOfMoreThanTwoGiBAreMadeInPieces) {
  constexpr int64_t kPiece = int64_t{1} << 30;
  constexpr int64_t kBytes = 2 * kPiece + 64;
  control_->memory_bytes = int64_t{8} << 30;
  control_->bytes_moved_max = 8;
  Open();
  auto from = *device().Allocate(kBytes);
  auto to = *device().Allocate(kBytes);
  auto list = *device().Prepare(
      {.num_slots = 2,
       .commands = {FillCommand{{0, 0, kBytes}, 7}, CopyCommand{{0, 0, kBytes}, {1, 0, kBytes}}}});
  const int64_t nodes = control_->graph_nodes_added;
  const auto run = Run(*list, {from.get(), to.get()});
  ASSERT_TRUE(run.status.ok()) << run.status << message_();
  EXPECT_EQ(control_->graph_nodes_added, nodes + 6);
  for (const int64_t begin : {int64_t{0}, kPiece, 2 * kPiece}) {
    std::string back(8, '\0');
    ASSERT_TRUE(device().CopyToHost(*to, begin, absl::MakeSpan(back)).ok());
    EXPECT_EQ(back, std::string(8, 7)) << begin;
  }
  control_->time.Simulate(/*launch_milliseconds=*/0, /*copy_milliseconds=*/10);
  const auto timed = Run(*list, {from.get(), to.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_EQ(timed.command_seconds.size(), 2u) << timed.status;
  EXPECT_NEAR(timed.command_seconds[1], 0.03, 1e-6) << "of three pieces";
}

// Otherwise a mirror of a gigabyte would stay pinned for as long as the device is open.
TEST_F(CudaDeviceTest, WhatListsCopyThroughIsGoneWithThem) {
  constexpr int64_t kBytes = 1 << 20;
  Open();
  auto buffer = *device().Allocate(kBytes);
  const int64_t objects = control_->objects;
  std::vector<std::unique_ptr<PreparedList>> lists;
  for (int i = 0; i < 4; ++i) {
    lists.push_back(*device().Prepare({.num_slots = 2,
                                       .commands = {CopyCommand{{0, 0, kBytes}, {1, 0, kBytes}}},
                                       .host_slots = {1}}));
  }
  EXPECT_GT(control_->objects, objects);
  lists.clear();
  EXPECT_EQ(control_->objects, objects);
}

TEST_F(CudaDeviceTest, OutOfReachBuffersAreRefused) {
  control_->devices = 2;
  control_->peers = false;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto other = *devices_[1]->Allocate(64);
  Buffer* slots[] = {other.get()};
  const absl::Status status =
      device().Submit(*list, slots, {}, [](SubmitResult) { ADD_FAILURE() << "done was called"; });
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("not one of cuda:0"));
}

TEST_F(CudaDeviceTest, BuffersAndListsMayOutliveTheirDevice) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare({.num_slots = 1, .commands = {launch, launch}});
  auto buffer = *device().Allocate(64);
  ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  devices_.clear();
  EXPECT_GT(control_->objects, 0);
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, 0);
}

}  // namespace
}  // namespace kiln::drivers::cuda
