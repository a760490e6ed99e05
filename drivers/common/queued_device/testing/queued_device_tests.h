// Tests of what all drivers with queued devices do alike, on stand-ins for their libraries: errors,
// failing lists, copies, the order of commands, losses and revivals. tests/conformance has the
// rest. A driver instantiates them with its Vendor (stand_in_fixture.h).
#ifndef KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_QUEUED_DEVICE_TESTS_H_
#define KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_QUEUED_DEVICE_TESTS_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/common/queued_device/testing/stand_in_fixture.h"
#include "tests/eventually.h"

namespace kiln::drivers::testing {

using ::kiln::testing::Eventually;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

template <typename Vendor>
class QueuedDeviceTest : public StandInFixture<Vendor> {};
TYPED_TEST_SUITE_P(QueuedDeviceTest);

TYPED_TEST_P(QueuedDeviceTest, NoLibraryIsNoDevice) {
  const std::string library = absl::StrCat("libno_such_", TypeParam::kName, ".so.1");
  typename TypeParam::Options options;
  options.library = library;
  const auto devices = typename TypeParam::Driver(options).Enumerate(&this->why_none_);
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(*devices, IsEmpty());
  EXPECT_THAT(this->why_none_, HasSubstr(library));
  EXPECT_THAT(this->why_none_, HasSubstr(TypeParam::kInstall));
}

TYPED_TEST_P(QueuedDeviceTest, LibrariesWithoutAFunctionAreNoDevice) {
  typename TypeParam::Options options;
  options.library = "libm.so.6";
  const auto devices = typename TypeParam::Driver(options).Enumerate(&this->why_none_);
  ASSERT_TRUE(devices.ok());
  EXPECT_THAT(*devices, IsEmpty());
  EXPECT_THAT(this->why_none_, HasSubstr(TypeParam::kTooOld));
}

TYPED_TEST_P(QueuedDeviceTest, LimitsOnMemoryHold) {
  this->Open({.memory_limit_bytes_per_device = 1 << 20});
  EXPECT_EQ(this->device().info().memory_bytes, 1 << 20);
  EXPECT_EQ(this->device().Allocate(2 << 20).status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status status = typename TypeParam::Driver({.memory_limit_bytes_per_device = -3})
                                  .Enumerate(&this->why_none_)
                                  .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("-3 bytes"));
}

TYPED_TEST_P(QueuedDeviceTest, MemoryThatTheVendorLacksIsNamed) {
  this->Open();
  this->control_->out_of_memory = true;
  const absl::Status status = this->device().Allocate(1000).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(),
              HasSubstr(absl::StrCat(TypeParam::kName, ":0 is out of memory: 1000 bytes")));
  this->control_->out_of_memory = false;
  EXPECT_TRUE(this->device().Allocate(1000).ok());
}

// Otherwise the list could use data that a failed copy did not write, without an error.
TYPED_TEST_P(QueuedDeviceTest, AListStartsAfterItsCopiesAreReported) {
  this->Open();
  auto fill = this->Prepare({FillCommand{{0, 0, 64}, 1}});
  auto buffer = *this->device().Allocate(64);
  const std::string bytes(64, 'a');
  absl::Notification go_on, ended;
  ASSERT_TRUE(this->device()
                  .StartCopyToDevice(*buffer, 0, bytes,
                                     [&](const absl::Status& status) {
                                       EXPECT_TRUE(status.ok()) << status;
                                       go_on.WaitForNotification();
                                     })
                  .ok());
  Buffer* slots[] = {buffer.get()};
  ASSERT_TRUE(this->device()
                  .Submit(*fill, slots, {},
                          [&](SubmitResult result) {
                            EXPECT_TRUE(result.status.ok()) << result.status;
                            ended.Notify();
                          })
                  .ok());
  EXPECT_TRUE(Eventually([&] { return ended.HasBeenNotified() || this->waiting() == 1; }));
  EXPECT_FALSE(ended.HasBeenNotified()) << "while the copy is being reported";
  go_on.Notify();
  EXPECT_TRUE(this->device().Synchronize().ok());
  EXPECT_TRUE(ended.HasBeenNotified());
}

// Copied in pieces, of which the last is shorter.
TYPED_TEST_P(QueuedDeviceTest, LargeCopiesArriveWhole) {
  this->Open();
  const size_t size = (13 << 20) + 5;
  auto buffer = *this->device().Allocate(static_cast<int64_t>(size));
  std::string sent(size, '\0');
  for (size_t i = 0; i < size; ++i) sent[i] = static_cast<char>(i * 2654435761u >> 11);
  ASSERT_TRUE(this->device().CopyToDevice(*buffer, 0, sent).ok());
  std::string back(size, '\0');
  ASSERT_TRUE(this->device().CopyToHost(*buffer, 0, absl::MakeSpan(back)).ok());
  EXPECT_TRUE(back == sent);
}

TYPED_TEST_P(QueuedDeviceTest, AListThatFailsAbortsItsGroup) {
  this->Open();
  auto kernel = *this->device().LoadKernel(this->Image(1));
  auto list = this->Prepare({this->LaunchOf(kernel), SignalCommand{0}});
  auto buffer = *this->device().Allocate(64);
  TypeParam::FailNextList(*this->control_);
  auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
  EXPECT_FALSE(this->Run(*list, {buffer.get()}, {.group = group}).status.ok());
  EXPECT_THAT(group->Wait(0).message(), HasSubstr(TypeParam::kFailed));
}

// Device 1 waits for device 0, which then waits for device 1.
TYPED_TEST_P(QueuedDeviceTest, DevicesWaitForEachOther) {
  TypeParam::SetDevices(*this->control_, 2);
  this->Open();
  ASSERT_EQ(this->devices_.size(), 2u);
  Device& one = *this->devices_[0];
  Device& two = *this->devices_[1];
  auto first = *one.Prepare({.num_slots = 1,
                             .commands = {FillCommand{{0, 0, 64}, 1}, SignalCommand{0},
                                          WaitCommand{1}, FillCommand{{0, 0, 64}, 2}}});
  auto second = *two.Prepare(
      {.num_slots = 1, .commands = {WaitCommand{0}, FillCommand{{0, 0, 64}, 3}, SignalCommand{1}}});
  auto a = *one.Allocate(64);
  auto b = *two.Allocate(64);
  Buffer* slots_a[] = {a.get()};
  Buffer* slots_b[] = {b.get()};
  for (int i = 0; i < 100; ++i) {
    auto group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4));
    const SubmitOptions options{.time_commands = i % 2 == 0, .group = group};
    const auto done = [](SubmitResult result) { EXPECT_TRUE(result.status.ok()) << result.status; };
    ASSERT_TRUE(two.Submit(*second, slots_b, options, done).ok());
    ASSERT_TRUE(one.Submit(*first, slots_a, options, done).ok());
  }
  std::string bytes(64, '\0');
  ASSERT_TRUE(one.CopyToHost(*a, 0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(64, '\2'));
  ASSERT_TRUE(two.CopyToHost(*b, 0, absl::MakeSpan(bytes)).ok());
  EXPECT_EQ(bytes, std::string(64, '\3'));
}

TYPED_TEST_P(QueuedDeviceTest, BuffersOutOfReachAreRefused) {
  TypeParam::SetDevices(*this->control_, 2);
  TypeParam::Separate(*this->control_);
  this->Open();
  ASSERT_EQ(this->devices_.size(), 2u);
  auto list = this->Prepare({FillCommand{{0, 0, 64}, 1}});
  auto other = *this->devices_[1]->Allocate(64);
  const absl::Status status = this->Refusal(this->device(), *list, other.get());
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr(absl::StrCat("not one of ", TypeParam::kName, ":0")));
}

TYPED_TEST_P(QueuedDeviceTest, BuffersAndListsMayOutliveTheirDevice) {
  this->Open();
  auto kernel = *this->device().LoadKernel(this->TableImage(1));
  auto list = this->Prepare({this->LaunchOf(kernel), this->LaunchOf(kernel)});
  auto buffer = this->Zeros();
  ASSERT_TRUE(this->Run(*list, {buffer.get()}).status.ok());
  this->devices_.clear();
  EXPECT_GT(this->control_->objects, 0);
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_EQ(this->control_->objects, 0);
}

TYPED_TEST_P(QueuedDeviceTest, CommandsAreTimedOneByOne) {
  this->control_->time.Simulate(/*launch_milliseconds=*/20);
  this->Open({.now = this->SimulatedClock()});
  auto kernel = *this->device().LoadKernel(this->TableImage(1));
  const LaunchCommand launch = this->LaunchOf(kernel);
  auto list = this->Prepare({launch, FillCommand{{0, 0, 0}, 1}, launch});
  auto buffer = this->Zeros();
  for (int i = 0; i < 2; ++i) {
    const SubmitResult result = this->Run(*list, {buffer.get()}, {.time_commands = true});
    ASSERT_TRUE(result.status.ok()) << result.status;
    ASSERT_EQ(result.command_seconds.size(), 3u);
    EXPECT_NEAR(result.command_seconds[0], 0.02, 1e-6);
    EXPECT_EQ(result.command_seconds[1], 0);
    EXPECT_NEAR(result.command_seconds[2], 0.02, 1e-6);
    EXPECT_NEAR(result.seconds, 0.04, 1e-6);
  }
  if (TypeParam::kComputes) {
    EXPECT_EQ(this->Read(*buffer), 4u);
  }
}

// The stand-ins run what may run in any order in another one than the list's.
TYPED_TEST_P(QueuedDeviceTest, AListKeepsTheOrderThatMatters) {
  if (!TypeParam::kComputes) GTEST_SKIP() << "its kernels compute nothing";
  this->Open();
  for (const bool by_table : {false, true}) {
    auto kernel = *this->device().LoadKernel(by_table ? this->TableImage(1) : this->Image(1));
    const LaunchCommand count = this->LaunchOf(kernel);
    auto list = *this->device().Prepare(
        {.num_slots = 3,
         .commands = {FillCommand{{0, 0, 64}, 0}, count, count, CopyCommand{{0, 0, 64}, {1, 0, 64}},
                      count, CopyCommand{{0, 0, 64}, {2, 0, 64}}}});
    const auto buffers = this->ManyZeros(3);
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(this->Run(*list, this->Slots(buffers, 3)).status.ok());
      EXPECT_EQ(this->Read(*buffers[1]), 2u);
      EXPECT_EQ(this->Read(*buffers[2]), 3u);
    }
  }
}

// The commands then have dependencies that their slots do not show.
TYPED_TEST_P(QueuedDeviceTest, SlotsThatShareABufferKeepTheListsOrder) {
  if (!TypeParam::kComputes) GTEST_SKIP() << "its kernels compute nothing";
  this->Open();
  auto kernel = *this->device().LoadKernel(this->Image(1));
  auto list = *this->device().Prepare(
      {.num_slots = 3,
       .commands = {FillCommand{{0, 0, 64}, 0}, FillCommand{{1, 0, 64}, 1},
                    this->LaunchOf(kernel, 1), CopyCommand{{0, 0, 64}, {2, 0, 64}},
                    this->LaunchOf(kernel, 2)}});
  const auto a = *this->device().Allocate(64);
  const auto b = *this->device().Allocate(64);
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(this->Run(*list, {a.get(), a.get(), b.get()}).status.ok());
    EXPECT_EQ(this->Read(*b), 0x01010103u);
  }
}

// Each submission has its own table while others before it run.
TYPED_TEST_P(QueuedDeviceTest, SubmissionsInFlightKeepTheirSlots) {
  this->Open();
  auto table = *this->device().LoadKernel(this->TableImage(1));
  auto plain = *this->device().LoadKernel(this->Image(1));
  auto list =
      this->Prepare({FillCommand{{0, 0, 64}, 0}, this->LaunchOf(table), this->LaunchOf(plain)});
  auto one = this->Prepare({this->LaunchOf(table)});
  const auto buffers = this->ManyZeros(20);
  this->SubmitForEach(buffers, {list.get(), one.get()});
  for (const auto& buffer : buffers) EXPECT_EQ(this->Read(*buffer), TypeParam::kComputes ? 3u : 0u);
}

TYPED_TEST_P(QueuedDeviceTest, SlotsBeyondATableAreRefused) {
  this->Open();
  auto kernel = *this->device().LoadKernel(this->TableImage(1));
  const absl::Status status =
      this->device()
          .Prepare({.num_slots = kTableSlotsMax + 1,
                    .commands = {LaunchCommand{kernel.get(), {{kTableSlotsMax, 0, 64}}}}})
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("takes a slot table"));
}

TYPED_TEST_P(QueuedDeviceTest, AFaultInAListLosesTheDeviceUntilItIsRevived) {
  this->Open();
  for (int i = 0; i < 5; ++i) {
    auto kernel = *this->device().LoadKernel(this->TableImage(1));
    auto list = this->Prepare(std::vector<Command>(3, this->LaunchOf(kernel)));
    auto buffer = *this->device().Allocate(64);
    EXPECT_TRUE(this->Run(*list, {buffer.get()}).status.ok());
    TypeParam::FaultInNextList(*this->control_);
    const absl::Status status = this->Run(*list, {buffer.get()}).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("the device is lost: "));
    EXPECT_THAT(status.message(), HasSubstr(TypeParam::kFault));
    EXPECT_EQ(this->device().Health(), status);
    EXPECT_EQ(this->device().Allocate(64).status(), status);
    TypeParam::Recover(*this->control_);
    EXPECT_EQ(this->device().Revive(), absl::OkStatus());
  }
}

TYPED_TEST_P(QueuedDeviceTest, ALostDeviceStaysLost) {
  this->Open();
  auto kernel = *this->device().LoadKernel(this->Image(1));
  auto list = this->Prepare({this->LaunchOf(kernel)});
  auto buffer = *this->device().Allocate(64);
  ASSERT_TRUE(this->Run(*list, {buffer.get()}).status.ok());
  TypeParam::Lose(*this->control_);
  const absl::Status lost = this->Run(*list, {buffer.get()}).status;
  EXPECT_EQ(lost.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(lost.message(), HasSubstr("the device is lost: "));
  EXPECT_THAT(lost.message(), HasSubstr(TypeParam::kLost));
  EXPECT_EQ(this->device().Health(), lost);
  // The device stays lost, even if the library's errors stop.
  TypeParam::Recover(*this->control_);
  EXPECT_EQ(this->Run(*list, {buffer.get()}).status, lost);
  EXPECT_EQ(this->device().Allocate(64).status(), lost);
  EXPECT_EQ(this->device().LoadKernel(this->Image(1)).status(), lost);
  EXPECT_EQ(this->device().CopyToDevice(*buffer, 0, "abc"), lost);
  EXPECT_EQ(this->device().Synchronize(), lost);
  EXPECT_EQ(this->device().Health(), lost);
  // A new device works once nothing of the lost one is left.
  buffer = nullptr;
  list = nullptr;
  kernel = nullptr;
  this->devices_.clear();
  this->Open();
  ASSERT_EQ(this->devices_.size(), 1u) << this->why_none_;
  EXPECT_TRUE(this->device().Allocate(64).ok());
}

TYPED_TEST_P(QueuedDeviceTest, ALostDeviceIsRevivedOnceItWorks) {
  this->Open();
  auto kernel = *this->device().LoadKernel(this->TableImage(1));
  const CommandList commands{.num_slots = 1,
                             .commands = {this->LaunchOf(kernel), this->LaunchOf(kernel)}};
  auto list = *this->device().Prepare(commands);
  auto buffer = this->Zeros();
  EXPECT_TRUE(this->device().Revive().ok()) << "it is not lost";
  EXPECT_TRUE(this->Run(*list, {buffer.get()}).status.ok());
  TypeParam::Lose(*this->control_);
  EXPECT_EQ(this->Run(*list, {buffer.get()}).status.code(), absl::StatusCode::kUnavailable);
  for (int i = 0; i < 2; ++i) {
    const absl::Status status = this->device().Revive();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("if this does not change, restart kilnd"));
    EXPECT_FALSE(this->device().Health().ok());
  }
  TypeParam::Recover(*this->control_);
  EXPECT_FALSE(this->device().Health().ok());
  ASSERT_TRUE(this->device().Revive().ok());
  EXPECT_TRUE(this->device().Health().ok());
  // Old objects are refused, new ones work.
  auto fresh = this->Zeros();
  EXPECT_THAT(this->Refusal(this->device(), *list, fresh.get()).message(),
              HasSubstr("was lost with this one"));
  EXPECT_THAT(this->device().CopyToDevice(*buffer, 0, "abc").message(),
              HasSubstr("was lost with it"));
  EXPECT_FALSE(this->device().Prepare(commands).ok());
  auto kernel_again = *this->device().LoadKernel(this->TableImage(1));
  auto again = this->Prepare({this->LaunchOf(kernel_again), this->LaunchOf(kernel_again)});
  EXPECT_TRUE(this->Run(*again, {fresh.get()}).status.ok());
  list = nullptr;
  kernel = nullptr;
  buffer = nullptr;
  EXPECT_TRUE(this->Run(*again, {fresh.get()}).status.ok());
  if (TypeParam::kComputes) {
    EXPECT_EQ(this->Read(*fresh), 4u);
  }
}

// Other threads free buffers, load kernels and query health at the same time.
TYPED_TEST_P(QueuedDeviceTest, WhatGoesOnBesideARevivalDoesNoHarm) {
  this->Open();
  std::atomic<bool> over = false;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      while (!over) {
        const auto buffer = this->device().Allocate(1 << 20);
        const auto kernel = this->device().LoadKernel(this->TableImage(1));
        EXPECT_TRUE(buffer.ok() || absl::IsUnavailable(buffer.status())) << buffer.status();
        EXPECT_TRUE(kernel.ok() || absl::IsUnavailable(kernel.status())) << kernel.status();
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    const auto fill =
        this->device().Prepare({.num_slots = 1, .commands = {FillCommand{{0, 0, 64}, 1}}});
    const auto buffer = this->device().Allocate(64);
    ASSERT_TRUE(fill.ok() && buffer.ok());
    TypeParam::Lose(*this->control_);
    EXPECT_FALSE(this->Run(**fill, {buffer->get()}).status.ok());
    EXPECT_FALSE(this->device().Health().ok());
    TypeParam::Recover(*this->control_);
    EXPECT_EQ(this->device().Revive(), absl::OkStatus());
  }
  over = true;
  for (std::thread& thread : threads) thread.join();
}

REGISTER_TYPED_TEST_SUITE_P(QueuedDeviceTest, NoLibraryIsNoDevice,
                            LibrariesWithoutAFunctionAreNoDevice, LimitsOnMemoryHold,
                            MemoryThatTheVendorLacksIsNamed, AListStartsAfterItsCopiesAreReported,
                            LargeCopiesArriveWhole, AListThatFailsAbortsItsGroup,
                            DevicesWaitForEachOther, BuffersOutOfReachAreRefused,
                            BuffersAndListsMayOutliveTheirDevice, CommandsAreTimedOneByOne,
                            AListKeepsTheOrderThatMatters, SlotsThatShareABufferKeepTheListsOrder,
                            SubmissionsInFlightKeepTheirSlots, SlotsBeyondATableAreRefused,
                            AFaultInAListLosesTheDeviceUntilItIsRevived, ALostDeviceStaysLost,
                            ALostDeviceIsRevivedOnceItWorks, WhatGoesOnBesideARevivalDoesNoHarm);

}  // namespace kiln::drivers::testing

#endif  // KILN_DRIVERS_COMMON_QUEUED_DEVICE_TESTING_QUEUED_DEVICE_TESTS_H_
