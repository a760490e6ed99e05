// What goes wrong on a device, and what is the driver's own; the rest is in tests/conformance.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/clock.h"
#include "drivers/cuda/api.h"
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

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
  EXPECT_THAT(status.message(), HasSubstr("the kernel counter does not assemble: CUDA_ERROR_"));
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
  EXPECT_TRUE(device().LoadKernel(TableImage(511)).ok());
  refused([](KernelImage& image) { image = TableImage(512); },
          "takes 512 arguments; the device takes 511");
}

// Commands that need nothing of each other may run in any order; those that do may not.
TEST_F(CudaDeviceTest, AGraphKeepsTheOrderThatMatters) {
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

TEST_F(CudaDeviceTest, AReplayWithOtherBuffersWritesTheSlotTableAlone) {
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

// Each has a table of its own on its way, while others before it run.
TEST_F(CudaDeviceTest, SubmissionsInFlightKeepTheirSlots) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand count{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 0}, count, count, count}});
  auto one = *device().Prepare({.num_slots = 1, .commands = {count}});
  control_->launch_milliseconds = 1;
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
  ASSERT_TRUE(device().Synchronize().ok());
  for (const auto& buffer : buffers) EXPECT_EQ(ReadFirst(*buffer), 4u);
  EXPECT_EQ(control_->graph_nodes_updated, updated + 19) << "the fills";
}

TEST_F(CudaDeviceTest, SlotsBeyondATableAreRefused) {
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

TEST_F(CudaDeviceTest, AReplaySetsOnlyTheAddressesThatChanged) {
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

// Then their order is more than their slots show.
TEST_F(CudaDeviceTest, SlotsThatShareABufferKeepTheListsOrder) {
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

TEST_F(CudaDeviceTest, AFaultInAKernelLosesTheDevice) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list =
      *device().Prepare({.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
  const absl::Status status = Run(*list, {buffer.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("the device is lost: "));
  EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
  EXPECT_EQ(device().Health(), status);
}

TEST_F(CudaDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  const CommandList commands{.num_slots = 1, .commands = {launch, launch}};
  auto list = *device().Prepare(commands);
  auto buffer = *device().Allocate(64);
  EXPECT_TRUE(device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = device().Revive();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
    EXPECT_THAT(status.message(), HasSubstr("if that stays so, kilnd must be started again"));
    EXPECT_FALSE(device().Health().ok());
  }
  control_->lost = 0;
  EXPECT_FALSE(device().Health().ok());
  ASSERT_TRUE(device().Revive().ok());
  EXPECT_TRUE(device().Health().ok());
  // What was lost is refused, and what is made anew works.
  auto fresh = *device().Allocate(64);
  ASSERT_TRUE(device().CopyToDevice(*fresh, 0, std::string(64, '\0')).ok());
  Buffer* slots[] = {fresh.get()};
  EXPECT_THAT(device().Submit(*list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(device().CopyToDevice(*buffer, 0, "abc").message(), HasSubstr("was lost with it"));
  EXPECT_FALSE(device().Prepare(commands).ok());
  auto kernel_again = *device().LoadKernel(TableImage(1));
  const LaunchCommand launch_again{kernel_again.get(), {{0, 0, 64}}};
  auto again = *device().Prepare({.num_slots = 1, .commands = {launch_again, launch_again}});
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  // CUDA has destroyed what the lost context had, so nothing of it is given back but the graph,
  // which is no context's.
  const int64_t objects = control_->objects;
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(control_->objects, objects - 1);
  EXPECT_TRUE(Run(*again, {fresh.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*fresh), 4u);
}

TEST_F(CudaDeviceTest, ADeviceIsRevivedTimeAndAgain) {
  Open();
  for (int i = 0; i < 5; ++i) {
    auto kernel = *device().LoadKernel(TableImage(1));
    auto list = *device().Prepare(
        {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}}});
    auto buffer = *device().Allocate(64);
    EXPECT_TRUE(Run(*list, {buffer.get()}).status.ok());
    control_->next_launch_fails = CUDA_ERROR_ILLEGAL_ADDRESS;
    EXPECT_EQ(Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
}

// Buffers go, kernels are asked for and health is looked at by threads that know of nothing.
TEST_F(CudaDeviceTest, WhatGoesOnBesideARevivalDoesNoHarm) {
  Open();
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const auto buffer = device().Allocate(1 << 20);
        const auto kernel = device().LoadKernel(TableImage(1));
        EXPECT_EQ(buffer.status().ok() || absl::IsUnavailable(buffer.status()), true);
        EXPECT_EQ(kernel.status().ok() || absl::IsUnavailable(kernel.status()), true);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
    EXPECT_FALSE(device().Health().ok());
    control_->lost = 0;
    EXPECT_EQ(device().Revive(), absl::OkStatus());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaDeviceTest, ARevivedDeviceAndItsPeersReachEachOther) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto before = *device().Allocate(64);
  control_->lost = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_FALSE(device().Health().ok());
  control_->lost = 0;
  ASSERT_TRUE(device().Revive().ok());
  auto here = *device().Allocate(64);
  auto there = *devices_[1]->Allocate(64);
  const CommandList copy{
      .num_slots = 2,
      .commands = {FillCommand{{0, 0, 64}, 1}, CopyCommand{{0, 0, 64}, {1, 0, 64}}}};
  auto list = *device().Prepare(copy);
  EXPECT_TRUE(Run(*list, {here.get(), there.get()}).status.ok());
  auto other_list = *devices_[1]->Prepare(copy);
  Buffer* slots[] = {there.get(), here.get()};
  std::promise<absl::Status> done;
  ASSERT_TRUE(devices_[1]
                  ->Submit(*other_list, slots, {},
                           [&](const SubmitResult& result) { done.set_value(result.status); })
                  .ok());
  EXPECT_EQ(done.get_future().get(), absl::OkStatus());
  slots[1] = before.get();
  EXPECT_THAT(devices_[1]->Submit(*other_list, slots, {}, [](SubmitResult) {}).message(),
              HasSubstr("was lost with it"));
}

TEST_F(CudaDeviceTest, ALostDeviceStaysLost) {
  Open();
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  ASSERT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(device().Health().message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  // Whatever the library says from now on.
  control_->lost = 0;
  EXPECT_EQ(Run(*fill, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Allocate(64).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().LoadKernel(Image(1)).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().CopyToDevice(*buffer, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable);
  // A fresh one works, once nothing of the lost one is left.
  buffer = nullptr;
  fill = nullptr;
  devices_.clear();
  Open();
  ASSERT_EQ(devices_.size(), 1u) << why_none_;
  EXPECT_TRUE(device().Allocate(64).ok());
}

// Otherwise the list could use what a failed copy has not written, and nobody would know.
TEST_F(CudaDeviceTest, AListStartsAfterItsCopiesAreReported) {
  Open();
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  const std::string bytes(64, 'a');
  std::atomic<bool> reported = false;
  ASSERT_TRUE(device()
                  .StartCopyToDevice(*buffer, 0, bytes,
                                     [&](const absl::Status& status) {
                                       EXPECT_TRUE(status.ok()) << status;
                                       absl::SleepFor(absl::Milliseconds(100));
                                       reported = true;
                                     })
                  .ok());
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_TRUE(reported);
  EXPECT_TRUE(device().Synchronize().ok());
}

TEST_F(CudaDeviceTest, ALossThatAnAllocationMeetsIsNoLackOfMemory) {
  Open();
  control_->lost = CUDA_ERROR_ECC_UNCORRECTABLE;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("CUDA_ERROR_ECC_UNCORRECTABLE"));
  EXPECT_EQ(device().Health(), status);
}

TEST_F(CudaDeviceTest, ALossWhileNothingRunsIsSeen) {
  for (const CUresult code : {CUDA_ERROR_ECC_UNCORRECTABLE, CUDA_ERROR_MPS_CLIENT_TERMINATED,
                              CUDA_ERROR_TENSOR_MEMORY_LEAK}) {
    Open();
    EXPECT_TRUE(device().Health().ok());
    control_->lost = code;
    EXPECT_EQ(device().Health().code(), absl::StatusCode::kUnavailable) << code;
    EXPECT_EQ(device().Synchronize().code(), absl::StatusCode::kUnavailable) << code;
    control_->lost = 0;
    devices_.clear();
  }
}

TEST_F(CudaDeviceTest, AnotherDeviceGoesOn) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto buffer = *device().Allocate(64);
  auto other = *devices_[1]->Allocate(64);
  auto fill = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  control_->lost_device = 1;
  control_->lost = CUDA_ERROR_LAUNCH_FAILED;
  EXPECT_EQ(devices_[1]->CopyToDevice(*other, 0, "abc").code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*buffer), 0x01010101u);
  EXPECT_TRUE(device().Health().ok());
}

TEST_F(CudaDeviceTest, AListThatFailsAbortsItsGroup) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}, SignalCommand{0}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = CUDA_ERROR_LAUNCH_FAILED;
  auto group = std::make_shared<SignalGroup>();
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
  control_->launch_milliseconds = 20;
  const SubmitResult result = Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.command_seconds.size(), 3u);
  EXPECT_GE(result.command_seconds[0], 0.015);
  EXPECT_EQ(result.command_seconds[1], 0);
  EXPECT_GE(result.command_seconds[2], 0.015);
  EXPECT_GE(result.seconds, 0.03);
}

// In pieces, the last of which is shorter.
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

// CUDA's graphs copy less than 2 GiB at once.
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
  control_->task_milliseconds = 10;
  const auto timed = Run(*list, {from.get(), to.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_EQ(timed.command_seconds.size(), 2u) << timed.status;
  EXPECT_GE(timed.command_seconds[1], 0.025) << "of three pieces";
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
