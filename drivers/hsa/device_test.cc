// Tests of code objects that are refused, of failing lists, of fills, and of a loss;
// drivers/common/queued_device/testing and tests/conformance have the rest.
#include <string>

#include "drivers/common/queued_device/testing/queued_device_tests.h"
#include "drivers/hsa/testing/stand_in_fixture.h"

namespace kiln::drivers::hsa {
namespace {

using ::testing::HasSubstr;
using HsaDeviceTest = HsaTest;

TEST_F(HsaDeviceTest, FillsNeedMemory) {
  Open();
  control_->out_of_memory = true;
  const CommandList fill{.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}};
  EXPECT_THAT(device().Prepare(fill).status().message(), HasSubstr("bytes left to fill from"));
  control_->out_of_memory = false;
  EXPECT_TRUE(device().Prepare(fill).ok());
}

TEST_F(HsaDeviceTest, CodeObjectsThatDoNotLoadSayWhy) {
  Open();
  const auto refused = [this](auto change, const std::string& why) {
    KernelImage image = Image(1);
    change(image.code);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(),
                HasSubstr("the kernel counter has a code object that cannot be "
                          "loaded: 0x1010: HSA_STATUS_ERROR_INVALID_CODE_OBJECT"));
    EXPECT_THAT(message(), HasSubstr(why));
  };
  refused([](std::string& code) { code = "nonsense"; }, "is no ELF file");
  refused([](std::string& code) { code.resize(300); }, "has cut off segments");
  refused([](std::string& code) { code[8] = 9; }, "of version 9");
  refused([](std::string& code) { code[48] = 0x11; }, "an unknown machine");
  refused([](std::string& code) { code.resize(code.size() - 1); }, "has no twin");
  refused(
      [](std::string& code) {
        const size_t name = code.find(".kernarg_segment_size");
        code[name + 21] = 7;  // the number after the key
      },
      "has .kernarg_segment_size 7");
}

TEST_F(HsaDeviceTest, CodeForAnotherProcessorIsRefused) {
  control_->isa = "amdgcn-amd-amdhsa--gfx1201:kiln-host-twin+";
  Open();
  const absl::Status status = device().LoadKernel(Image(1)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("cannot be loaded: the error 0x100d"));
  EXPECT_EQ(message(), "the code object is for gfx1100");
}

TEST_F(HsaDeviceTest, KernelsThatTheDeviceCannotRunAreRefused) {
  Open();
  ExpectRefused([](KernelImage& image) { image.code.clear(); }, "has no code");
  ExpectRefused([](KernelImage& image) { image.block_size = 1025; }, "the device takes 1024");
  ExpectRefused([](KernelImage& image) { image.shared_bytes = (64 << 10) + 1; },
                "the device has 65536");
  ExpectRefused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  ExpectRefused([](KernelImage& image) { image.grid_size = int64_t{1} << 32; }, "2^32 - 1");
  ExpectRefused(
      [](KernelImage& image) {
        image.num_arguments = 512;
        image.access.clear();
      },
      "the device takes 511");
  ExpectRefused(
      [](KernelImage& image) {
        image.num_arguments = 2;
        image.access.clear();
      },
      "was compiled for arguments of 8 bytes at multiples of 16; its image has 16");
}

TEST_F(HsaDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch = LaunchOf(kernel);
  auto list = *device().Prepare(
      {.num_slots = 2, .commands = {launch, CopyCommand{{0, 0, 64}, {1, 0, 64}}, launch, launch}});
  auto a = Zeros();
  auto b = *device().Allocate(64);
  control_->next_copy_fails = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const absl::Status status = Run(*list, {a.get(), b.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot copy for command 1: 0x1008"));
  EXPECT_TRUE(device().Health().ok());
  EXPECT_EQ(Read(*a), 1u) << "what came before the copy has run";
  EXPECT_TRUE(Run(*list, {a.get(), b.get()}).status.ok());
  EXPECT_EQ(Read(*a), 4u);
  EXPECT_EQ(Read(*b), 2u);
  control_->next_copy_fails = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  EXPECT_THAT(device().CopyToDevice(*a, 0, "abcd").message(), HasSubstr("a copy failed: 0x1008"));
  EXPECT_TRUE(device().CopyToDevice(*a, 0, "abcd").ok());
}

TEST_F(HsaDeviceTest, LargeFillsAreMadeInPieces) {
  Open();
  const int64_t size = (13 << 20) + 5;
  auto buffer = *device().Allocate(size);
  auto list = Prepare({FillCommand{{0, 0, size}, 7}});
  const int64_t copies = control_->copies_run;
  ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(control_->copies_run, copies + 4);
  std::string back(static_cast<size_t>(size), '\0');
  ASSERT_TRUE(device().CopyToHost(*buffer, 0, absl::MakeSpan(back)).ok());
  EXPECT_TRUE(back == std::string(static_cast<size_t>(size), 7));
}

TEST_F(HsaDeviceTest, FillsAreTimed) {
  control_->time.Simulate(/*launch_milliseconds=*/20, /*copy_milliseconds=*/1);
  Open({.now = SimulatedClock()});
  auto kernel = *device().LoadKernel(Image(1));
  auto list = Prepare({LaunchOf(kernel), FillCommand{{0, 0, 64}, 1}});
  auto buffer = *device().Allocate(64);
  const SubmitResult result = Run(*list, {buffer.get()}, {.time_commands = true});
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.command_seconds.size(), 2u);
  EXPECT_NEAR(result.command_seconds[0], 0.02, 1e-6);
  EXPECT_NEAR(result.command_seconds[1], 0.001, 1e-6);
  EXPECT_NEAR(result.seconds, 0.021, 1e-6);
}

TEST_F(HsaDeviceTest, OtherDevicesGoOn) {
  control_->devices = 2;
  Open();
  ASSERT_EQ(devices_.size(), 2u);
  auto buffer = *device().Allocate(64);
  auto other = *devices_[1]->Allocate(64);
  auto fill = Prepare({FillCommand{{0, 0, 64}, 1}});
  EXPECT_TRUE(Run(*fill, {other.get()}).status.ok()) << "a peer's memory";
  control_->lost_device = 1;
  control_->lost = HSA_STATUS_ERROR_EXCEPTION;
  auto there = *devices_[1]->Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
  EXPECT_EQ(RunOn(*devices_[1], *there, {other.get()}).status.code(),
            absl::StatusCode::kUnavailable);
  EXPECT_TRUE(Run(*fill, {buffer.get()}).status.ok());
  EXPECT_EQ(Read(*buffer), 0x01010101u);
  EXPECT_TRUE(device().Health().ok());
  EXPECT_FALSE(Refusal(device(), *fill, other.get()).ok()) << "it was lost";
}

}  // namespace
}  // namespace kiln::drivers::hsa

namespace kiln::drivers::testing {
INSTANTIATE_TYPED_TEST_SUITE_P(Hsa, QueuedDeviceTest, hsa::StandIn);
}  // namespace kiln::drivers::testing
