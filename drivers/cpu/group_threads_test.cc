#include "drivers/cpu/group_threads.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/cpu/device.h"
#include "drivers/cpu/host.h"
#include "drivers/cpu/testing/exchanges.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers::cpu {
namespace {

using Group = std::shared_ptr<SignalGroup>;

class GroupThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const auto target = DetectTarget(1); !target.ok()) GTEST_SKIP() << target.status();
  }

  void MakeDevices(int count, std::function<int()> cores,
                   const SteadyClock& now = std::chrono::steady_clock::now) {
    threads_ = std::make_shared<GroupThreads>(std::move(cores), now);
    devices_.clear();
    for (int i = 0; i < count; ++i) {
      DeviceInfo info;
      info.name = absl::StrCat("cpu:", i);
      info.target = *DetectTarget(1);
      info.memory_bytes = 64 << 20;
      devices_.push_back(std::make_unique<CpuDevice>(
          std::move(info), [] { return 1; }, std::chrono::steady_clock::now, threads_));
    }
  }
  void MakeDevices(int count, int cores) {
    MakeDevices(count, [cores] { return cores; });
  }

  static Group MakeGroup(int signals) {
    return std::make_shared<SignalGroup>(std::make_shared<Signals>(signals));
  }
  std::unique_ptr<PreparedList> Prepare(int device, std::vector<Command> commands, int slots = 0) {
    auto list = devices_[device]->Prepare({.num_slots = slots, .commands = std::move(commands)});
    EXPECT_TRUE(list.ok()) << list.status();
    return *std::move(list);
  }

  // A submission and its completion.
  struct Submitted {
    absl::Notification ended;
    absl::Status status;
    absl::Status Wait() {
      ended.WaitForNotification();
      return status;
    }
  };
  std::shared_ptr<Submitted> Submit(int device, PreparedList& list, Group group,
                                    std::vector<Buffer*> slots = {},
                                    std::shared_ptr<std::atomic<bool>> unwanted = nullptr) {
    auto submitted = std::make_shared<Submitted>();
    const absl::Status status = devices_[device]->Submit(
        list, slots, {.group = std::move(group), .unwanted = std::move(unwanted)},
        [submitted](const SubmitResult& result) {
          submitted->status = result.status;
          submitted->ended.Notify();
        });
    EXPECT_TRUE(status.ok()) << status;
    return submitted;
  }

  // Waits until `count` threads sleep, either set aside or waiting for the group's signals.
  void AwaitSleep(const SignalGroup& group, int count) {
    EXPECT_TRUE(
        kiln::testing::Eventually([&] { return threads_->asleep() + group.sleepers() == count; }));
  }

  std::shared_ptr<GroupThreads> threads_;
  std::vector<std::unique_ptr<CpuDevice>> devices_;
};

TEST_F(GroupThreadsTest, DevicesReadWhatTheOthersWroteBefore) {
  constexpr int kSteps = 60;
  constexpr int kRuns = 3;
  for (const auto& [devices, cores] :
       {std::pair(2, 1), std::pair(5, 1), std::pair(5, 2), std::pair(9, 3), std::pair(3, 8)}) {
    MakeDevices(devices, cores);
    Exchanges exchanges(devices, kSteps);
    // One set of buffers for each run, since all runs are queued at once.
    std::vector<std::vector<std::unique_ptr<Buffer>>> published(kRuns), read(kRuns);
    std::vector<std::unique_ptr<PreparedList>> lists;
    std::vector<std::shared_ptr<Submitted>> submitted;
    for (int run = 0; run < kRuns; ++run) {
      for (int i = 0; i < devices; ++i) {
        published[run].push_back(*devices_[i]->Allocate(exchanges.published_bytes()));
        read[run].push_back(*devices_[i]->Allocate(exchanges.read_bytes()));
      }
    }
    for (int run = 0; run < kRuns; ++run) {
      const auto group = std::make_shared<SignalGroup>(exchanges.signals());
      for (int i = 0; i < devices; ++i) {
        const int device = run % 2 == 0 ? i : devices - 1 - i;
        std::vector<Buffer*> slots;
        for (const auto& buffer : published[run]) slots.push_back(buffer.get());
        slots.push_back(read[run][device].get());
        lists.push_back(Prepare(device, exchanges.Commands(device, run), devices + 1));
        submitted.push_back(Submit(device, *lists.back(), group, slots));
      }
    }
    for (const auto& one : submitted) EXPECT_TRUE(one->Wait().ok()) << one->status;
    for (int run = 0; run < kRuns; ++run)
      for (const auto& buffer : read[run]) exchanges.Check(*buffer, run);
  }
}

std::vector<Command> WaitsFor(std::vector<int> signals) {
  std::vector<Command> commands;
  for (const int signal : signals) commands.push_back(WaitCommand{signal});
  return commands;
}

// With one core, an idle thread sleeps while another is awake, which then has to run both lists.
TEST_F(GroupThreadsTest, AThreadRunsTheListsOfThoseThatSleep) {
  MakeDevices(4, 1);
  Exchanges exchanges(4, 50);
  std::vector<std::unique_ptr<PreparedList>> lists;
  std::vector<std::unique_ptr<Buffer>> published, read;
  for (int i = 0; i < 4; ++i) {
    lists.push_back(Prepare(i, exchanges.Commands(i, 0), 5));
    published.push_back(*devices_[i]->Allocate(exchanges.published_bytes()));
    read.push_back(*devices_[i]->Allocate(exchanges.read_bytes()));
  }
  for (int run = 0; run < 1000 && threads_->helped() == 0; ++run) {
    const auto group = std::make_shared<SignalGroup>(exchanges.signals());
    std::vector<std::shared_ptr<Submitted>> submitted;
    for (int i = 0; i < 4; ++i) {
      std::vector<Buffer*> slots;
      for (const auto& buffer : published) slots.push_back(buffer.get());
      slots.push_back(read[i].get());
      submitted.push_back(Submit(i, *lists[i], group, slots));
    }
    for (const auto& one : submitted) EXPECT_TRUE(one->Wait().ok()) << one->status;
  }
  EXPECT_GT(threads_->helped(), 0);
}

// Both for sleeping and for waking threads, and for signals raised by any thread.
TEST_F(GroupThreadsTest, SignalsOfOthersWakeAllWhoWait) {
  constexpr int kDevices = 5;
  constexpr int kSignals = 6;
  for (const int cores : {1, 2}) {
    MakeDevices(kDevices, cores);
    std::vector<std::unique_ptr<PreparedList>> lists;
    for (int i = 0; i < kDevices; ++i)
      lists.push_back(
          Prepare(i, i % 2 == 0 ? WaitsFor({0, 1, 2, 3, 4, 5}) : WaitsFor({5, 4, 3, 2, 1, 0})));
    for (const bool sleep_first : {false, false, false, true, true}) {
      const Group group = MakeGroup(kSignals);
      std::vector<std::shared_ptr<Submitted>> submitted;
      for (int i = 0; i < kDevices; ++i) submitted.push_back(Submit(i, *lists[i], group));
      std::vector<std::thread> raisers;
      for (int signal = 0; signal < kSignals; ++signal) {
        if (sleep_first) AwaitSleep(*group, kDevices);
        raisers.emplace_back([&, signal] { group->Raise(signal); });
        if (sleep_first) raisers.back().join();
      }
      for (const auto& one : submitted) EXPECT_TRUE(one->Wait().ok()) << one->status;
      for (std::thread& raiser : raisers)
        if (raiser.joinable()) raiser.join();
    }
  }
}

TEST_F(GroupThreadsTest, AnAbortEndsAllThatWait) {
  MakeDevices(4, 1);
  std::vector<std::unique_ptr<PreparedList>> lists;
  for (int i = 0; i < 4; ++i) lists.push_back(Prepare(i, WaitsFor({0, 1})));
  for (int round = 0; round < 50; ++round) {
    const Group group = MakeGroup(2);
    std::vector<std::shared_ptr<Submitted>> submitted;
    for (int i = 0; i < 4; ++i) submitted.push_back(Submit(i, *lists[i], group));
    if (round % 3 == 0) AwaitSleep(*group, 4);
    if (round % 2 == 0) group->Raise(0);
    group->Abort(absl::CancelledError("nobody will signal"));
    for (const auto& one : submitted)
      EXPECT_EQ(one->Wait().code(), absl::StatusCode::kCancelled) << one->status;
  }
}

// A waiting list of one group blocks nothing else.
TEST_F(GroupThreadsTest, OtherGroupsAndListsGoOn) {
  MakeDevices(5, 1);
  auto held = Prepare(0, WaitsFor({0}));
  auto also_held = Prepare(1, WaitsFor({0}));
  const Group waits = MakeGroup(1);
  auto first = Submit(0, *held, waits);
  auto second = Submit(1, *also_held, waits);
  auto signal_and_wait = Prepare(2, {SignalCommand{0}, WaitCommand{1}});
  auto wait_and_signal = Prepare(3, {WaitCommand{0}, SignalCommand{1}});
  auto nothing = Prepare(4, {});
  for (int i = 0; i < 50; ++i) {
    const Group works = MakeGroup(2);
    auto one = Submit(i % 2 == 0 ? 3 : 2, i % 2 == 0 ? *wait_and_signal : *signal_and_wait, works);
    auto other =
        Submit(i % 2 == 0 ? 2 : 3, i % 2 == 0 ? *signal_and_wait : *wait_and_signal, works);
    EXPECT_TRUE(one->Wait().ok());
    EXPECT_TRUE(other->Wait().ok());
    EXPECT_TRUE(Submit(4, *nothing, nullptr)->Wait().ok());
  }
  EXPECT_FALSE(first->ended.HasBeenNotified());
  EXPECT_FALSE(second->ended.HasBeenNotified());
  waits->Raise(0);
  EXPECT_TRUE(first->Wait().ok());
  EXPECT_TRUE(second->Wait().ok());
}

// The list that ends first frees its device, even if another thread ran it and the rest of its
// group waits.
TEST_F(GroupThreadsTest, ADeviceGoesWhileOthersWork) {
  for (int round = 0; round < 20; ++round) {
    MakeDevices(4, 1 + round % 2);
    const Group group = MakeGroup(4);
    std::vector<std::unique_ptr<PreparedList>> lists;
    std::vector<std::shared_ptr<Submitted>> submitted;
    const int goes = round % 4;
    for (int i = 0; i < 4; ++i) {
      lists.push_back(Prepare(i, i == goes ? WaitsFor({0}) : WaitsFor({0, 1})));
      submitted.push_back(Submit(i, *lists[i], group));
    }
    group->Raise(0);
    devices_[goes].reset();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(submitted[i]->ended.HasBeenNotified(), i == goes);
    group->Raise(1);
    for (const auto& one : submitted) EXPECT_TRUE(one->Wait().ok()) << one->status;
  }
}

// The number of cores may change at any time.
TEST_F(GroupThreadsTest, ThreadsFollowTheNumberOfCores) {
  // Shared, because devices may call these until they are destroyed.
  const auto cores = std::make_shared<std::atomic<int>>(1);
  const auto seconds = std::make_shared<std::atomic<int64_t>>(0);
  MakeDevices(
      4, [cores] { return cores->load(); },
      [seconds] { return SteadyTime(std::chrono::seconds(seconds->load())); });
  std::vector<std::unique_ptr<PreparedList>> lists;
  for (int i = 0; i < 4; ++i)
    lists.push_back(Prepare(i, {WaitCommand{4}, SignalCommand{i}, WaitCommand{(i + 1) % 4}}));
  for (const int now : {3, 1, 0, 8, 2, 1, 4}) {
    *cores = now;
    *seconds += 2;
    const Group group = MakeGroup(5);
    std::vector<std::shared_ptr<Submitted>> submitted;
    for (int i = 0; i < 4; ++i) submitted.push_back(Submit(i, *lists[i], group));
    group->Raise(4);
    for (const auto& one : submitted) EXPECT_TRUE(one->Wait().ok()) << one->status;
  }
}

// A kernel that writes 1 to its argument and then loops endlessly.
KernelImage Endless(const Target& target) {
  KernelImage image;
  image.name = "endless";
  image.architecture = target.architecture;
  image.code = std::string(
      "\x48\x8b\x07"  // mov rax, [rdi]
      "\xc6\x00\x01"  // mov byte ptr [rax], 1
      "\xeb\xfe",     // jmp to itself
      8);
  image.num_arguments = 1;
  image.grid_size = 1;
  return image;
}

// Cancelled lists are stopped on the thread that runs them at that time.
TEST_F(GroupThreadsTest, KernelsThatNobodyWantsAreGivenUp) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "signals wait for the next function that the sanitizer knows";
#endif
  MakeDevices(3, 1);
  auto kernel = devices_[0]->LoadKernel(Endless(devices_[0]->info().target));
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  auto endless = Prepare(0,
                         {WaitCommand{0}, SignalCommand{2},
                          LaunchCommand{kernel->get(), {{0, 0, 64}}}, SignalCommand{1}},
                         /*slots=*/1);
  auto buffer = *devices_[0]->Allocate(64);
  auto* byte = static_cast<std::atomic<char>*>(buffer->host_pointer());
  auto wait = Prepare(1, WaitsFor({1}));
  auto signal_and_wait = Prepare(2, {SignalCommand{0}, WaitCommand{1}});
  for (int i = 0; i < 40; ++i) {
    const Group group = MakeGroup(3);
    const auto unwanted = std::make_shared<std::atomic<bool>>(false);
    std::vector<std::shared_ptr<Submitted>> submitted;
    *byte = 0;
    submitted.push_back(Submit(0, *endless, group, {buffer.get()}, unwanted));
    submitted.push_back(Submit(1, *wait, group, {}, unwanted));
    submitted.push_back(Submit(2, *signal_and_wait, group, {}, unwanted));
    // The list has begun or not (i % 3 == 0), is about to begin (1), or has begun (2).
    if (i % 3 == 1) {
      EXPECT_TRUE(kiln::testing::Eventually([&] { return group->IsDecided(2); }));
    }
    if (i % 3 == 2) {
      EXPECT_TRUE(kiln::testing::Eventually([&] { return *byte == 1; }));
    }
    devices_[0]->StopUnwanted();
    *unwanted = true;
    devices_[0]->StopUnwanted();
    for (const auto& one : submitted)
      EXPECT_EQ(one->Wait().code(), absl::StatusCode::kCancelled) << one->status;
  }
}

}  // namespace
}  // namespace kiln::drivers::cpu
