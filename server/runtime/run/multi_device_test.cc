// Programs on several devices at once: right results, one order on all devices, and no device that
// waits for one that has failed.
#include <algorithm>
#include <atomic>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "drivers/cpu/driver.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/program/explain.h"
#include "server/runtime/testing/held_device.h"
#include "server/runtime/testing/multi_device_fixture.h"

namespace kiln::runtime {
namespace {

using kiln::testing::HeldDevice;
using kiln::testing::MeanGraph;
using kiln::testing::MultiDeviceTest;
using kiln::testing::StagesGraph;
using ::testing::HasSubstr;
using ::testing::Not;

// With as many cores as devices, and with fewer.
class OnCoresTest : public MultiDeviceTest, public ::testing::WithParamInterface<int> {};

TEST_P(OnCoresTest, DevicesAddUpWhatEachHas) {
  UseCpus(4, GetParam());
  const auto bound = Compile(MeanGraph(4, 8), {0, 1, 2, 3});
  ASSERT_NE(bound, nullptr) << compiled_;
  EXPECT_THAT(QueueText(bound->program->compiled()), HasSubstr("exchange along mesh axes 0"));
  EXPECT_GT(bound->program->sharded().exchanged_bytes(), 0);
  ValuePointer rows = Input(*bound, 0);
  // Runs that each use the result of the one before, all queued at once.
  std::vector<Created> runs;
  for (int i = 0; i < 50; ++i) {
    runs.push_back(Start(bound, i % 10 == 0 ? rows : runs.back().results[2]));
  }
  float scale = 1;
  for (int i = 0; i < 50; ++i) {
    if (i % 10 == 0) scale = 1;
    ASSERT_TRUE(Await(runs[i]).ok()) << i << *runs[i].status;
    ExpectSums(runs[i], scale);
    scale *= 2;
  }
  EXPECT_EQ(bound->program->runs(), 50);
  for (const auto& device : devices_) EXPECT_GT(device->dispatcher().device_seconds(), 0);
}

TEST_P(OnCoresTest, StagesHandOnWhatTheyHave) {
  UseCpus(4, GetParam());
  for (const std::vector<int>& places : std::vector<std::vector<int>>{{0, 1, 2, 3}, {2, 0}}) {
    const auto bound = Compile(StagesGraph(static_cast<int>(places.size()), 8), places);
    ASSERT_NE(bound, nullptr) << compiled_;
    const Program& program = *bound->program;
    EXPECT_EQ(program.sharded().distinct().size(), places.size());
    // The kernels of every device are listed.
    const std::string queue = QueueText(program);
    for (const ShardedProgram::Member& member : program.sharded().members())
      EXPECT_THAT(queue, HasSubstr("on " + member.device->name() + "\n"));
    size_t kernels = 0;
    for (const ShardedProgram::Member& member : program.sharded().members())
      kernels += member.compiled->kernels.size();
    EXPECT_EQ(program.compiled().kernels.size(), kernels);
    EXPECT_EQ(&program.device_of_kernel(0), devices_[places[0]].get());
    EXPECT_EQ(&program.device_of_kernel(kernels - 1), devices_[places.back()].get());
    const ValuePointer rows = Input(*bound, 0);
    Created before;
    for (int i = 0; i < 20; ++i) {
      const Created run = Start(bound, i == 0 ? rows : before.results[2]);
      ASSERT_TRUE(Await(run).ok()) << *run.status;
      ExpectSums(run, static_cast<float>(1 << i));
      // Results are where the graph says.
      EXPECT_EQ(run.results[0]->pool(), devices_[places[0]]->pool().get());
      EXPECT_EQ(run.results[1]->pool(), devices_[places.back()]->pool().get());
      before = run;
    }
    // The first run of a program is timed, kernel by kernel.
    for (const KernelTimes& times : program.kernel_times()) EXPECT_GT(times.samples, 0);
  }
}

// Also on devices that run the same program as another one.
TEST_F(MultiDeviceTest, KernelsTimeIsCountedOnEachDevice) {
  UseCpus(2);
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const Program& program = *bound->program;
  EXPECT_THAT(program.device_names(), ::testing::ElementsAre("cpu:0", "cpu:1"));
  const ValuePointer rows = Input(*bound, 0);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(Await(Start(bound, rows)).ok());
  const std::string text = metrics_.Text();
  const std::string& kernel = program.compiled().kernels[0].image.name;
  for (int member = 0; member < 2; ++member) {
    const std::string labels = absl::StrCat("{device=\"cpu:", member, "\",user=\"\",program=\"",
                                            program.short_digest(), "\",kernel=\"", kernel, "\"} ");
    EXPECT_THAT(text, HasSubstr("kiln_kernel_device_seconds_total" + labels));
    EXPECT_THAT(text, Not(HasSubstr("kiln_kernel_device_seconds_total" + labels + "0\n")));
    EXPECT_THAT(text, HasSubstr("kiln_kernel_duration_seconds_count" + labels));
    // The shares add up to the run's whole time.
    const auto shares = program.kernel_shares(member);
    ASSERT_NE(shares, nullptr);
    double sum = shares->outside;
    for (const auto& share : shares->kernels) sum += share.share;
    EXPECT_NEAR(sum, 1, 1e-9);
  }
}

// A processor and an OpenCL device, which do not reach each other's memory and have different
// kernels.
TEST_F(MultiDeviceTest, DevicesThatDoNotReachEachOtherCopyThroughTheHost) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "PoCL keeps what its compiler allocates; NullDevicesAreCopiedToAsWell runs here";
#endif
  UseCpus(2, 1);
  drivers::opencl::OpenClDriver opencl({.sharing_host_memory = true});
  UseDriver(opencl);
  if (devices_.size() < 3) GTEST_SKIP() << "no OpenCL device";
  for (const std::vector<int>& places : std::vector<std::vector<int>>{{0, 2}, {2, 0}}) {
    for (const std::string& graph : {MeanGraph(2, 8), StagesGraph(2, 8)}) {
      const auto bound = Compile(graph, places);
      ASSERT_NE(bound, nullptr) << compiled_;
      EXPECT_GT((*bound->program->OnDevices())->staging_bytes, 0);
      const ValuePointer rows = Input(*bound, 0);
      Created before;
      for (int i = 0; i < 10; ++i) {
        const Created run = Start(bound, i == 0 ? rows : before.results[2]);
        ASSERT_TRUE(Await(run).ok()) << *run.status;
        ExpectSums(run, static_cast<float>(1 << i));
        before = run;
      }
    }
  }
}

// No buffer that is written is in two slots: commands on it would run one after another.
TEST_F(MultiDeviceTest, WhatIsWrittenStandsInOneSlot) {
  UseCpus(2, 1);
  UseNulls(2, [] { return absl::OkStatus(); });
  const auto bound = Compile(MeanGraph(4, 8), {0, 1, 2, 3});
  ASSERT_NE(bound, nullptr) << compiled_;
  Program& program = *bound->program;
  const auto loaded = program.OnDevices();
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  RunMemory memory;
  ASSERT_TRUE(memory.Reserve(program, *loaded, accounts_).ok());
  const auto joint = program.ReserveJointMemory(*loaded);
  ASSERT_TRUE(joint.ok()) << joint.status();
  for (int member = 0; member < program.sharded().size(); ++member) {
    Slots slots;
    memory.AddSlots(program.sharded(), **loaded, member, &slots);
    const drivers::Buffer* const published = (*joint)->members[member].published.get();
    EXPECT_EQ(std::count(slots.begin(), slots.end(), published), 1) << member;
  }
}

// Three devices split eight rows as 3, 3 and 2; six devices have 2, 1 or 0 each.
TEST_F(MultiDeviceTest, SizesNeedNotComeOutEven) {
  UseCpus(6, 2);
  for (const int devices : {3, 5, 6}) {
    std::vector<int> places(static_cast<size_t>(devices));
    std::iota(places.begin(), places.end(), 0);
    const auto bound = Compile(MeanGraph(devices, 8), places);
    ASSERT_NE(bound, nullptr) << compiled_;
    ValuePointer rows = Input(*bound, 0);
    float scale = 1;
    for (int i = 0; i < 10; ++i) {
      const Created run = Start(bound, rows);
      ASSERT_TRUE(Await(run).ok()) << *run.status;
      ExpectSums(run, scale);
      rows = run.results[2];  // twice as much, including values that the kernel left in padding
      scale *= 2;
    }
  }
}

// The same copies without a vendor's library. The sums of the null device are not checked.
TEST_F(MultiDeviceTest, NullDevicesAreCopiedToAsWell) {
  UseCpus(1);
  UseNulls(1, [] { return absl::OkStatus(); });
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const int64_t staging = (*bound->program->OnDevices())->staging_bytes;
  EXPECT_GT(staging, 0);
  EXPECT_GT(bound->program->host_bytes(), staging) << "it is charged";
  const ValuePointer rows = Input(*bound, 0);
  for (int i = 0; i < 10; ++i) {
    const Created run = Start(bound, rows);
    ASSERT_TRUE(Await(run).ok()) << *run.status;
    EXPECT_EQ(Whole(*run.results[2])[1], 2.0f);  // the update, of which each device has a part
  }
}

TEST_F(MultiDeviceTest, AsManyDevicesAsTheMeshHasPlaces) {
  UseCpus(3);
  EXPECT_EQ(Compile(MeanGraph(4, 8), {0, 1, 2}), nullptr);
  EXPECT_EQ(compiled_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(compiled_.message(), HasSubstr("4 places, but 3 devices"));
}

TEST_F(MultiDeviceTest, AMeshOfOneDeviceRunsAsOneDevice) {
  UseCpus(1);
  const auto bound = Compile(MeanGraph(1, 8), {0});
  ASSERT_NE(bound, nullptr) << compiled_;
  const ShardedProgram& sharded = bound->program->sharded();
  EXPECT_FALSE(sharded.is_joint());
  EXPECT_EQ(sharded.published_bytes(), 0);
  EXPECT_TRUE(sharded.compiled(0).exchanges.empty());
  EXPECT_EQ((*bound->program->OnDevices())->signals, nullptr);
  ValuePointer rows = Input(*bound, 0);
  for (int i = 0; i < 10; ++i) {
    const Created run = Start(bound, rows);
    ASSERT_TRUE(Await(run).ok()) << *run.status;
    ExpectSums(run, static_cast<float>(1 << i));
    rows = run.results[2];
  }
}

TEST_F(MultiDeviceTest, InputsThatLieOtherwiseAreRefused) {
  UseCpus(2);
  const auto there = Compile(MeanGraph(2, 4), {0, 1});
  const auto turned = Compile(MeanGraph(2, 4), {1, 0});
  ASSERT_NE(turned, nullptr) << compiled_;
  const ValuePointer rows = Input(*there, 0);
  EXPECT_TRUE(CheckInputs(there->signature, {rows}).ok());
  const absl::Status refused = CheckInputs(turned->signature, {rows});
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("input 0 is [data, _] on cpu:0, cpu:1"));
  EXPECT_THAT(refused.message(), HasSubstr("needs it [data, _] on cpu:1, cpu:0"));
}

// Joint runs on overlapping devices, in different orders, from several threads: if the order
// differed between devices, two of them could wait for each other.
TEST_P(OnCoresTest, JointRunsThatShareDevicesAllEnd) {
  UseCpus(4, GetParam());
  const std::vector<std::vector<int>> sets = {{0, 1}, {1, 0}, {2, 1}, {3, 0}, {2, 3}, {1, 3}};
  std::vector<std::thread> threads;
  std::atomic<int> ended = 0;
  int users = 0;
  for (const auto& places : sets) {
    const auto bound = Compile(MeanGraph(2, 4), places);
    ASSERT_NE(bound, nullptr) << compiled_;
    threads.emplace_back([this, bound, &ended, user = users++] {
      std::vector<Created> runs;
      for (int i = 0; i < 200; ++i) runs.push_back(Start(bound, Input(*bound, 1), user));
      for (const Created& run : runs)
        if (Await(run).ok()) ++ended;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(ended, 1200);
}

INSTANTIATE_TEST_SUITE_P(Cores, OnCoresTest, ::testing::Values(1, 2, 4));

TEST_F(MultiDeviceTest, ACancelledRunEndsAndTheNextOneRuns) {
  UseCpus(2, 1);
  const auto bound = Compile(MeanGraph(2, 4), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  // In the queue of one device only: it is parked there, and holds nothing.
  auto run = Run::Create("run", bound, {Input(*bound, 0)}, {accounts_[0], accounts_[1]}, &order_,
                         [](const absl::Status&, absl::Span<const Run::DeviceTime>) {});
  ASSERT_TRUE(run.ok()) << run.status();
  const auto work = (*run)->MakeWork();
  devices_[0]->dispatcher().Enqueue(flows_[0][0], work[0]);
  const auto other = devices_[0]->dispatcher().AddFlow("bob", 1);
  EXPECT_TRUE(devices_[0]->WaitIdle(absl::InfiniteDuration()));
  EXPECT_TRUE((*run)->Cancel());
  EXPECT_FALSE((*run)->Cancel());
  const auto results = (*run)->results();
  devices_[1]->dispatcher().Enqueue(flows_[1][0], work[1]);
  EXPECT_EQ(results[0]->status().code(), absl::StatusCode::kCancelled);
  const Created next = Start(bound, Input(*bound, 0));
  EXPECT_TRUE(Await(next).ok()) << *next.status;
  devices_[0]->dispatcher().RemoveFlow(other);
}

TEST_F(MultiDeviceTest, AProgramIsLoadedBesideWhatRuns) {
  HeldDevice held;
  std::string why_none;
  auto cpus =
      *drivers::cpu::CpuDriver({.devices = 3, .threads_per_device = 1}).Enumerate(&why_none);
  UseDevice(held.Wrap(std::move(cpus[0])));
  UseDevice(std::move(cpus[1]));
  UseDevice(std::move(cpus[2]));
  const auto slow = Compile(MeanGraph(2, 4), {0, 1});
  const auto next = Compile(MeanGraph(2, 4), {0, 2});
  ASSERT_TRUE(slow && next) << compiled_;
  const ValuePointer slow_input = Input(*slow, 0);
  const ValuePointer next_input = Input(*next, 0);
  held.Hold();
  const Created first = Start(slow, slow_input, 0);
  held.AwaitList();
  // The second device waits for the first, and both are occupied.
  for (const int i : {0, 1})
    EXPECT_GT(devices_[i]->dispatcher().predicted_seconds_in_flight(), 0) << i;
  const Created second = Start(next, next_input, 1);
  EXPECT_FALSE(first.ended->HasBeenNotified());
  held.LetGo();
  EXPECT_TRUE(Await(first).ok()) << *first.status;
  EXPECT_TRUE(Await(second).ok()) << *second.status;
}

TEST_F(MultiDeviceTest, ADaemonThatStopsFailsWhatIsParked) {
  UseCpus(2);
  const auto bound = Compile(MeanGraph(2, 4), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const Created run = Create(bound, Input(*bound, 0));
  devices_[0]->dispatcher().Enqueue(flows_[0][0], run.work[0]);
  for (auto& device : devices_) device->dispatcher().Suspend();
  devices_[1]->dispatcher().Enqueue(flows_[1][0], run.work[1]);
  for (auto& device : devices_) EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration()));
  EXPECT_FALSE(run.ended->HasBeenNotified());
  for (auto& device : devices_)
    device->dispatcher().Stop(absl::UnavailableError("the daemon stops"));
  EXPECT_EQ(Await(run).message(), "the daemon stops");
  EXPECT_EQ(run.results[0]->status().message(), "the daemon stops");
}

TEST_F(MultiDeviceTest, ALostDeviceFailsItsRunsAlone) {
  // All null devices share one fault; the second half belongs to another driver.
  const auto broken = std::make_shared<std::atomic<bool>>(false);  // devices ask until their end
  UseNulls(2, [broken] { return *broken ? absl::InternalError("unplugged") : absl::OkStatus(); });
  UseNulls(2, [] { return absl::OkStatus(); });
  const auto lost = Compile(MeanGraph(2, 4), {0, 2});
  const auto well = Compile(MeanGraph(2, 4), {2, 3});
  ASSERT_TRUE(lost && well) << compiled_;
  ASSERT_TRUE(Await(Start(lost, Input(*lost, 0))).ok());
  const ValuePointer input = Input(*lost, 0);
  std::vector<Created> runs;
  for (int i = 0; i < 100; ++i) {
    if (i == 50) *broken = true;
    runs.push_back(Start(lost, input));
    runs.push_back(Start(well, Input(*well, 0)));
  }
  int failed = 0;
  for (size_t i = 0; i < runs.size(); ++i) {
    const absl::Status status = Await(runs[i]);
    if (i % 2 == 1) {
      EXPECT_TRUE(status.ok()) << status;
    } else if (!status.ok()) {
      ++failed;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
      EXPECT_THAT(status.message(), HasSubstr("device null:0 failed: ")) << status;
    }
  }
  EXPECT_GE(failed, 50);
  EXPECT_EQ(devices_[2]->health(), Health::kHealthy);
}

}  // namespace
}  // namespace kiln::runtime
