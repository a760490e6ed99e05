// Tests of the device's errors, of failing lists, and of copies; tests/conformance has the rest.
#include <string>

#include "absl/synchronization/notification.h"
#include "drivers/hsa/api.h"
#include "drivers/hsa/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::hsa {
namespace {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using HsaDeviceTest = HsaTest;

TEST_F(HsaDeviceTest, MemoryThatTheVendorLacksIsNamed) {
  Open();
  control_->out_of_memory = true;
  const absl::Status status = device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("hsa:0 is out of memory: 1000 bytes"));
  const CommandList fill{.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}};
  EXPECT_THAT(device().Prepare(fill).status().message(), HasSubstr("bytes left to fill from"));
  control_->out_of_memory = false;
  EXPECT_TRUE(device().Allocate(1000).ok());
}

TEST_F(HsaDeviceTest, CodeObjectsThatDoNotLoadSayWhy) {
  Open();
  const auto refused = [this](auto change, const std::string& why) {
    KernelImage image = Image(1);
    change(image.code);
    const absl::Status status = device().LoadKernel(image).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << why;
    EXPECT_THAT(status.message(),
                HasSubstr("the kernel counter has a code object that cannot be loaded: 0x1010: "
                          "HSA_STATUS_ERROR_INVALID_CODE_OBJECT"));
    EXPECT_THAT(message_(), HasSubstr(why));
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
  EXPECT_THAT(status.message(), HasSubstr("does not load: the error 0x100d"));
  EXPECT_STREQ(message_(), "the code object is for gfx1100");
}

TEST_F(HsaDeviceTest, KernelsThatTheDeviceCannotRunAreRefused) {
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
  refused([](KernelImage& image) { image.shared_bytes = (64 << 10) + 1; }, "the device has 65536");
  refused([](KernelImage& image) { image.scratch_bytes = 64; }, "64 bytes of scratch");
  refused([](KernelImage& image) { image.grid_size = int64_t{1} << 32; }, "2^32 - 1");
  refused(
      [](KernelImage& image) {
        image.num_arguments = 512;
        image.access.clear();
      },
      "the device takes 511");
  refused(
      [](KernelImage& image) {
        image.num_arguments = 2;
        image.access.clear();
      },
      "was compiled for arguments of 8 bytes at multiples of 16; its image has 16");
}

TEST_F(HsaDeviceTest, AnErrorThatPassesFailsOneList) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 2, .commands = {launch, CopyCommand{{0, 0, 64}, {1, 0, 64}}, launch, launch}});
  auto a = *device().Allocate(64);
  auto b = *device().Allocate(64);
  Clear(*a);
  control_->next_copy_fails = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  const absl::Status status = Run(*list, {a.get(), b.get()}).status;
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("cannot copy for command 1: 0x1008"));
  EXPECT_TRUE(device().Health().ok());
  EXPECT_EQ(ReadFirst(*a), 1u) << "what came before the copy has run";
  EXPECT_TRUE(Run(*list, {a.get(), b.get()}).status.ok());
  EXPECT_EQ(ReadFirst(*a), 4u);
  EXPECT_EQ(ReadFirst(*b), 2u);
  control_->next_copy_fails = HSA_STATUS_ERROR_OUT_OF_RESOURCES;
  EXPECT_THAT(device().CopyToDevice(*a, 0, "abcd").message(), HasSubstr("a copy failed: 0x1008"));
  EXPECT_TRUE(device().CopyToDevice(*a, 0, "abcd").ok());
}

// Otherwise the list could use data that a failed copy did not write, without an error.
TEST_F(HsaDeviceTest, AListStartsAfterItsCopiesAreReported) {
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

TEST_F(HsaDeviceTest, AListThatFailsAbortsItsGroup) {
  Open();
  auto kernel = *device().LoadKernel(Image(1));
  auto list = *device().Prepare(
      {.num_slots = 1, .commands = {LaunchCommand{kernel.get(), {{0, 0, 64}}}, SignalCommand{0}}});
  auto buffer = *device().Allocate(64);
  control_->next_launch_fails = HSA_STATUS_ERROR_MEMORY_FAULT;
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr("HSA_STATUS_ERROR_MEMORY_FAULT"));
}

TEST_F(HsaDeviceTest, CommandsAreTimedOneByOne) {
  control_->time.Simulate(/*launch_milliseconds=*/20, /*copy_milliseconds=*/1);
  Open(/*memory_limit=*/0,
       [this] { return SteadyTime(std::chrono::nanoseconds(control_->time.Nanoseconds())); });
  auto kernel = *device().LoadKernel(Image(1));
  const LaunchCommand launch{kernel.get(), {{0, 0, 64}}};
  auto list = *device().Prepare(
      {.num_slots = 1,
       .commands = {launch, FillCommand{{0, 0, 0}, 1}, launch, FillCommand{{0, 0, 64}, 1}}});
  auto buffer = *device().Allocate(64);
  const SubmitResult result = Run(*list, {buffer.get()}, {.time_commands = true, .group = nullptr});
  ASSERT_TRUE(result.status.ok()) << result.status;
  ASSERT_EQ(result.command_seconds.size(), 4u);
  EXPECT_NEAR(result.command_seconds[0], 0.02, 1e-6);
  EXPECT_EQ(result.command_seconds[1], 0);
  EXPECT_NEAR(result.command_seconds[2], 0.02, 1e-6);
  EXPECT_NEAR(result.command_seconds[3], 0.001, 1e-6);
  EXPECT_NEAR(result.seconds, 0.041, 1e-6);
}

// Copied in pieces, of which the last is shorter.
TEST_F(HsaDeviceTest, LargeCopiesArriveWhole) {
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

TEST_F(HsaDeviceTest, LargeFillsAreMadeInPieces) {
  Open();
  const int64_t size = (13 << 20) + 5;
  auto buffer = *device().Allocate(size);
  auto list = *device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, size}, 7}}});
  const int64_t copies = control_->copies_run;
  ASSERT_TRUE(Run(*list, {buffer.get()}).status.ok());
  EXPECT_EQ(control_->copies_run, copies + 4);
  std::string back(static_cast<size_t>(size), '\0');
  ASSERT_TRUE(device().CopyToHost(*buffer, 0, absl::MakeSpan(back)).ok());
  EXPECT_TRUE(back == std::string(static_cast<size_t>(size), 7));
}

TEST_F(HsaDeviceTest, OutOfReachBuffersAreRefused) {
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
  EXPECT_THAT(status.message(), HasSubstr("not one of hsa:0"));
}

TEST_F(HsaDeviceTest, BuffersAndListsMayOutliveTheirDevice) {
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
}  // namespace kiln::drivers::hsa
