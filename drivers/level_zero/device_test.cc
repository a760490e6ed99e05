// Tests of kernels that are refused, of failing lists, and of copies;
// drivers/common/queued_device/testing and tests/conformance have the rest.
#include <atomic>
#include <string>

#include "drivers/common/queued_device/testing/queued_device_tests.h"
#include "drivers/level_zero/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::level_zero {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using LevelZeroDeviceTest = LevelZeroTest;

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
  ExpectRefused([](KernelImage& image) { image.code.clear(); }, "has no code");
  ExpectRefused(
      [](KernelImage& image) {
        image.num_arguments = 2;
        image.access.clear();
      },
      "its function takes 1");
  ExpectRefused([](KernelImage& image) { image = TableImage(255); },
                "takes 255 arguments; the device takes 254");
  ExpectRefused([](KernelImage& image) { image.block_size = 1025; }, "the device takes 1024");
  ExpectRefused([](KernelImage& image) { image.code = StandIn::Spirv(1, false, 32); },
                "declares blocks of 1 threads, but its function needs 32");
  ExpectRefused([](KernelImage& image) { image.shared_bytes = (64 << 10) + 1; },
                "the device has 65536");
  ExpectRefused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  ExpectRefused([](KernelImage& image) { image.grid_size = int64_t{1} << 31; },
                "2147483648 blocks");
  control_->block_threads_max = 128;
  KernelImage large = Image(1);
  large.block_size = 129;
  EXPECT_EQ(BlockThreadsMax(device().LoadKernel(large).status()), 128);
}

TEST_F(LevelZeroDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(TableImage(1));
  auto list = Prepare({LaunchOf(kernel), LaunchOf(kernel)});
  auto buffer = Zeros();
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

TEST_F(LevelZeroDeviceTest, CopiesRunBesideLists) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare({LaunchOf(kernel)});
  auto used = Zeros();
  auto other = Zeros();
  std::atomic<bool> has_copied = false;
  std::string bytes(64, 'x');
  control_->launch_gate.Close();
  Buffer* slots[] = {used.get()};
  EXPECT_TRUE(device().Submit(*list, slots, {}, [](SubmitResult) {}).ok());
  EXPECT_TRUE(Eventually([&] { return control_->launch_gate.held() == 1; }));
  EXPECT_TRUE(device()
                  .StartCopyToHost(*other, 0, absl::MakeSpan(bytes),
                                   [&](const absl::Status& status) {
                                     EXPECT_TRUE(status.ok()) << status;
                                     has_copied = true;
                                   })
                  .ok());
  EXPECT_TRUE(Eventually([&] { return has_copied.load(); }));
  control_->launch_gate.Open();
  EXPECT_TRUE(device().Synchronize().ok());
}

TEST_F(LevelZeroDeviceTest, CopiesNeedNoQueueOfTheirOwn) {
  control_->copy_queues = false;
  Open();
  const size_t size = (13 << 20) + 5;
  auto buffer = *device().Allocate(static_cast<int64_t>(size));
  const std::string sent(size, 'x');
  ASSERT_TRUE(device().CopyToDevice(*buffer, 0, sent).ok());
  std::string back(size, '\0');
  ASSERT_TRUE(device().CopyToHost(*buffer, 0, absl::MakeSpan(back)).ok());
  EXPECT_TRUE(back == sent);
}

}  // namespace
}  // namespace kiln::drivers::level_zero

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(LevelZero, QueuedDeviceTest, level_zero::StandIn);
}  // namespace kiln::drivers::testing
