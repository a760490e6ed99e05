// Tests of kernels that are refused, of failing lists, and of large copies;
// drivers/common/queued_device/testing and tests/conformance have the rest.
#include <string>

#include "drivers/common/queued_device/testing/queued_device_tests.h"
#include "drivers/cuda/testing/stand_in_fixture.h"

namespace kiln::drivers::cuda {
namespace {

using ::testing::HasSubstr;
using CudaDeviceTest = CudaTest;

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
  ExpectRefused([](KernelImage& image) { image.code.clear(); }, "has no code");
  ExpectRefused([](KernelImage& image) { image.block_size = 1025; }, "the device takes 1024");
  ExpectRefused([](KernelImage& image) { image.shared_bytes = (48 << 10) + 1; },
                "the device has 49152");
  ExpectRefused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  ExpectRefused([](KernelImage& image) { image.grid_size = int64_t{1} << 31; }, "2^31 - 1");
  EXPECT_TRUE(device().LoadKernel(TableImage(510)).ok());
  ExpectRefused([](KernelImage& image) { image = TableImage(511); },
                "takes 511 arguments; the device takes 510");
}

TEST_F(CudaDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch = LaunchOf(kernel);
  auto one = Prepare({launch});
  auto many = Prepare({launch, launch, launch});
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
  ASSERT_TRUE(run.status.ok()) << run.status << message();
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

}  // namespace
}  // namespace kiln::drivers::cuda

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Cuda, QueuedDeviceTest, cuda::StandIn);
}  // namespace kiln::drivers::testing
