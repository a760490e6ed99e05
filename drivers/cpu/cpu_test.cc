// Tests specific to the CPU driver; tests/conformance has the rest.
#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/cpu/driver.h"
#include "drivers/cpu/host.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::drivers::cpu {
namespace {

using ::testing::HasSubstr;

TEST(HostTest, TargetIsWhatThisProcessorHas) {
  auto target = DetectTarget(3);
  if (!target.ok()) GTEST_SKIP() << target.status();
  EXPECT_EQ(target->architecture, "x86-64");
  EXPECT_EQ(target->limits.compute_units, 3);
  const bool wide = __builtin_cpu_supports("avx512vl");
  EXPECT_EQ(target->Has("avx512f"), wide);
  EXPECT_EQ(target->Has("fma"), __builtin_cpu_supports("fma") != 0);
  EXPECT_EQ(target->limits.vector_bytes == 64, wide);
  EXPECT_GE(target->limits.near_memory_bytes, 16 << 10);
  EXPECT_GT(target->limits.private_cache_bytes, target->limits.near_memory_bytes);
  EXPECT_FALSE(ProcessorModel().empty());
}

TEST(DriverTest, SharesTheMachineAmongDevices) {
  std::string why_none;
  auto devices = CpuDriver({.devices = 3}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) GTEST_SKIP() << why_none;
  ASSERT_EQ(devices->size(), 3u);
  int64_t memory = 0;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ((*devices)[i]->info().name, absl::StrCat("cpu:", i));
    EXPECT_EQ((*devices)[i]->info().target.limits.compute_units, std::max(1, AvailableCores() / 3));
    memory += (*devices)[i]->info().memory_bytes;
  }
  EXPECT_LE(memory, AvailableMemory());
}

// Callbacks are slow here; waiting lists run meanwhile, and callbacks are called in order.
TEST(DriverTest, GoesOnWhileEndsAreTold) {
  std::string why_none;
  auto devices = CpuDriver({.devices = 2, .threads_per_device = 1}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) GTEST_SKIP() << why_none;
  Device& device = *devices->front();
  Device& watcher = *devices->back();
  auto nothing = device.Prepare({});
  auto signal = device.Prepare({.commands = {SignalCommand{0}}});
  auto wait = watcher.Prepare({.commands = {WaitCommand{0}}});
  ASSERT_TRUE(nothing.ok() && signal.ok() && wait.ok());
  const SubmitOptions options{.group = std::make_shared<SignalGroup>(std::make_shared<Signals>(4))};
  std::vector<int> told;  // written by one thread at a time
  absl::Notification all_wait, last_ran;
  // No list waits after this one yet, so its callback holds the device until the others are
  // queued.
  ASSERT_TRUE(device
                  .Submit(**nothing, {}, {},
                          [&](const SubmitResult&) {
                            all_wait.WaitForNotification();
                            told.push_back(0);
                          })
                  .ok());
  ASSERT_TRUE(device
                  .Submit(**nothing, {}, {},
                          [&](const SubmitResult&) {
                            last_ran.WaitForNotification();
                            told.push_back(1);
                          })
                  .ok());
  ASSERT_TRUE(
      device.Submit(**signal, {}, options, [&](const SubmitResult&) { told.push_back(2); }).ok());
  ASSERT_TRUE(
      watcher.Submit(**wait, {}, options, [&](const SubmitResult&) { last_ran.Notify(); }).ok());
  all_wait.Notify();
  ASSERT_TRUE(device.Synchronize().ok());
  EXPECT_EQ(told, (std::vector<int>{0, 1, 2}));
}

// A kernel that is an endless loop.
KernelImage EndlessKernel(const Target& target, int64_t grid_size) {
  KernelImage image;
  image.name = "endless";
  image.architecture = target.architecture;
  image.code = "\xeb\xfe";
  image.grid_size = grid_size;
  image.flops = 1e12;  // large enough for all threads
  return image;
}

TEST(DriverTest, KernelsThatNobodyWantsAreGivenUp) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "signals wait for the next function that the sanitizer knows";
#endif
  std::string why_none;
  auto devices = CpuDriver({.threads_per_device = 3}).Enumerate(&why_none);
  ASSERT_TRUE(devices.ok()) << devices.status();
  if (devices->empty()) GTEST_SKIP() << why_none;
  Device& device = *devices->front();
  // On the queue's thread alone, then on all threads.
  for (const int64_t grid_size : {1, 1000}) {
    auto kernel = device.LoadKernel(EndlessKernel(device.info().target, grid_size));
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    CommandList list;
    list.commands = {LaunchCommand{kernel->get(), {}}, LaunchCommand{kernel->get(), {}}};
    auto endless = device.Prepare(std::move(list));
    ASSERT_TRUE(endless.ok()) << endless.status();
    auto nothing = device.Prepare({});
    for (int i = 0; i < 20; ++i) {
      const auto unwanted = std::make_shared<std::atomic<bool>>(false);
      absl::Status ended;
      const SubmitOptions options{.unwanted = unwanted};
      for (int lists = 0; lists < 2; ++lists) {
        ASSERT_TRUE(device
                        .Submit(**endless, {}, options,
                                [&](const SubmitResult& result) { ended.Update(result.status); })
                        .ok());
      }
      // The list may have begun or not.
      if (i % 2 == 0) std::this_thread::yield();
      // Another list's flag stops nothing, and a list that is not cancelled runs to its end.
      device.StopUnwanted();
      bool others_ran = false;
      ASSERT_TRUE(device
                      .Submit(**nothing, {}, {.unwanted = std::make_shared<std::atomic<bool>>()},
                              [&](const SubmitResult& result) { others_ran = result.status.ok(); })
                      .ok());
      *unwanted = true;
      device.StopUnwanted();
      ASSERT_TRUE(device.Synchronize().ok());
      EXPECT_EQ(ended.code(), absl::StatusCode::kCancelled);
      EXPECT_TRUE(others_ran);
    }
  }
}

TEST(DriverTest, OptionsAreChecked) {
  std::string why_none;
  EXPECT_THAT(CpuDriver({.devices = -1}).Enumerate(&why_none).status().message(), HasSubstr("-1"));
  EXPECT_THAT(CpuDriver({.threads_per_device = -2}).Enumerate(&why_none).status().message(),
              HasSubstr("-2"));
  EXPECT_THAT(
      CpuDriver({.memory_limit_bytes_per_device = -3}).Enumerate(&why_none).status().message(),
      HasSubstr("-3"));
  auto none = CpuDriver({.devices = 0}).Enumerate(&why_none);
  ASSERT_TRUE(none.ok());
  EXPECT_TRUE(none->empty());
  EXPECT_THAT(why_none, HasSubstr("configuration"));
}

}  // namespace
}  // namespace kiln::drivers::cpu
