// Runs on several devices that are submitted in pieces: work between the pieces, and early ends.
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "drivers/cpu/driver.h"
#include "drivers/opencl/driver.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/runtime/testing/held_device.h"
#include "server/runtime/testing/multi_device_fixture.h"

namespace kiln::runtime {
namespace {

using kiln::testing::HeldDevice;
using kiln::testing::MeanGraph;
using kiln::testing::MeanGraphOnOne;
using kiln::testing::MultiDeviceTest;
using kiln::testing::StagesGraph;

size_t PiecesOf(const BoundProgram& bound) {
  Program& program = *bound.program;
  const auto pieces = program.CutIntoPieces(*program.OnDevices());
  EXPECT_TRUE(pieces.ok()) << pieces.status();
  return *pieces == nullptr ? 1 : (*pieces)->seconds.size();
}

class MultiDevicePiecesTest : public MultiDeviceTest {
 protected:
  // Two processors, the first of which can be held.
  MultiDevicePiecesTest() {
    CutAll();
    std::string why_none;
    auto cpus =
        *drivers::cpu::CpuDriver({.devices = 2, .threads_per_device = 1}).Enumerate(&why_none);
    UseDevice(held_.Wrap(std::move(cpus[0])));
    UseDevice(std::move(cpus[1]));
  }
  ~MultiDevicePiecesTest() override {
    for (auto& device : devices_) EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration()));
    devices_.clear();
  }
  // Returns a run that is held in its first piece, and another user's run, which waits.
  std::pair<Created, Created> StartHeld(const std::shared_ptr<const BoundProgram>& bound) {
    const ValuePointer rows = Input(*bound, 0);
    held_.Hold();
    const Created run = Start(bound, rows, 0);
    held_.AwaitList();
    return {run, Start(bound, rows, 1)};
  }
  void ExpectRight(const Created& run, float scale) {
    const absl::Status status = Await(run);
    ASSERT_TRUE(status.ok()) << status;
    ExpectSums(run, scale);
  }

  std::function<void()> on_kernel_;  // called on the first device, if set
  HeldDevice held_{[this](const drivers::Command& command) {
    if (!std::holds_alternative<drivers::LaunchCommand>(command)) return;
    ++kernels_;
    if (on_kernel_) on_kernel_();
  }};
  std::atomic<int> kernels_ = 0;
};

TEST_F(MultiDeviceTest, ShortRunsAreSubmittedWhole) {
  limits_.slice_seconds = 60;
  UseCpus(2);
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  EXPECT_TRUE(Await(Start(bound, Input(*bound, 0))).ok());
  EXPECT_EQ(PiecesOf(*bound), 1);
}

class InPiecesTest : public MultiDeviceTest {
 protected:
  void ExpectTheSame(const std::vector<int>& places) {
    const auto devices = static_cast<int>(places.size());
    for (const std::string& graph : {MeanGraph(devices, 8), StagesGraph(devices, 8)})
      ExpectTheSame(graph, places);
  }

 private:
  void ExpectTheSame(const std::string& graph, const std::vector<int>& places) {
    const auto bound = Compile(graph, places);
    ASSERT_NE(bound, nullptr) << compiled_;
    EXPECT_GE(PiecesOf(*bound), 2);
    ValuePointer rows = Input(*bound, 0);
    std::vector<Created> runs;
    for (int i = 0; i < 20; ++i) {
      runs.push_back(Start(bound, rows));
      rows = runs.back().results[2];
    }
    for (int i = 0; i < 20; ++i) {
      ASSERT_TRUE(Await(runs[i]).ok()) << *runs[i].status;
      ExpectSums(runs[i], static_cast<float>(1 << i));
    }
    EXPECT_EQ(bound->program->runs(), 20);
    for (const KernelTimes& times : bound->program->kernel_times()) EXPECT_GT(times.samples, 0);
  }
};

TEST_F(InPiecesTest, MakesTheSame) {
  CutAll();
  UseCpus(4, 2);
  ExpectTheSame({0, 1, 2, 3});
}

// Each device has different kernels, and they exchange data through the host.
TEST_F(InPiecesTest, MakesTheSameOnDevicesOfTwoKinds) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "PoCL keeps what its compiler allocates";
#endif
  CutAll();
  UseCpus(2, 1);
  drivers::opencl::OpenClDriver opencl({.sharing_host_memory = true});
  UseDriver(opencl);
  if (devices_.size() < 3) GTEST_SKIP() << "no OpenCL device";
  ExpectTheSame({0, 2});
  ExpectTheSame({2, 1});
}

// The runs share memory, which the first to begin keeps until its end.
TEST_F(MultiDevicePiecesTest, RunsOfTwoUsersAreKeptApart) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const Created doubled = Start(bound, Input(*bound, 0));
  ExpectRight(doubled, 1);
  const ValuePointer rows = Input(*bound, 0);
  held_.Hold();
  std::vector<Created> anns;
  std::vector<Created> bobs;
  for (int i = 0; i < 30; ++i) {
    anns.push_back(Start(bound, rows, 0));
    bobs.push_back(Start(bound, doubled.results[2], 1));
  }
  held_.LetGo();
  for (int i = 0; i < 30; ++i) {
    ExpectRight(anns[i], 1);
    ExpectRight(bobs[i], 2);
  }
}

TEST_F(MultiDevicePiecesTest, OthersComeInBetween) {
  const auto joint = Compile(MeanGraph(2, 8), {0, 1});
  const auto alone = Compile(MeanGraphOnOne(), {0});
  ASSERT_TRUE(joint && alone) << compiled_;
  ExpectRight(Start(joint, Input(*joint, 0)), 1);
  ExpectRight(Start(alone, Input(*alone, 0), 1), 1);
  const ValuePointer rows = Input(*joint, 0);
  const ValuePointer others_rows = Input(*alone, 0);
  Created other;
  std::vector<bool> has_ended;
  on_kernel_ = [&] { has_ended.push_back(other.ended->HasBeenNotified()); };
  held_.Hold();
  const Created run = Start(joint, rows, 0);
  held_.AwaitList();
  // By a user who has had no time on the device yet: the run above may have taken longer than
  // the other one.
  other = Start(alone, others_rows, 2);
  held_.LetGo();
  ExpectRight(run, 1);
  ExpectRight(other, 1);
  ASSERT_FALSE(has_ended.empty());
  EXPECT_FALSE(has_ended.front());
  EXPECT_TRUE(has_ended.back()) << "the last piece's kernel came behind the other run";
}

TEST_F(MultiDevicePiecesTest, ACancelledRunEndsWithItsPiece) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  ExpectRight(Start(bound, Input(*bound, 0)), 1);
  const int whole = kernels_.exchange(0);
  const ValuePointer rows = Input(*bound, 0);
  held_.Hold();
  const Created run = Start(bound, rows);
  held_.AwaitList();
  const Created next = Start(bound, rows);
  EXPECT_TRUE(run.run->Cancel());
  EXPECT_FALSE(run.run->Cancel());
  for (int i = 0; i < 2; ++i) devices_[i]->dispatcher().DropUnwanted(flows_[i][0]);
  EXPECT_FALSE(run.ended->HasBeenNotified()) << "the device still uses its memory";
  held_.LetGo();
  EXPECT_EQ(Await(run).code(), absl::StatusCode::kCancelled);
  ExpectRight(next, 1);
  EXPECT_LT(kernels_, 2 * whole);
}

TEST_F(MultiDevicePiecesTest, ItsSessionsEndStopsItAndOthersGoOn) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const auto [run, other] = StartHeld(bound);
  for (int i = 0; i < 2; ++i) devices_[i]->dispatcher().RemoveFlow(flows_[i][0]);
  held_.LetGo();
  EXPECT_EQ(Await(run).code(), absl::StatusCode::kCancelled);
  ExpectRight(other, 1);
}

TEST_F(MultiDevicePiecesTest, ADaemonThatStopsEndsWhatHasBegun) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const auto [run, waits] = StartHeld(bound);
  for (auto& device : devices_) device->dispatcher().Suspend();
  held_.LetGo();
  for (auto& device : devices_) EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration()));
  EXPECT_TRUE(run.ended->HasBeenNotified());
  ExpectRight(run, 1);
  EXPECT_FALSE(waits.ended->HasBeenNotified());
  for (auto& device : devices_)
    device->dispatcher().Stop(absl::UnavailableError("the daemon stops"));
  EXPECT_EQ(Await(waits).message(), "the daemon stops");
}

// Work that follows it computed with undefined data, and may end first.
TEST_F(MultiDevicePiecesTest, WhoUsesResultsOfACancelledRunFails) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  const auto alone = Compile(MeanGraphOnOne(), {0});
  ASSERT_TRUE(bound && alone) << compiled_;
  for (const auto& program : {bound, alone}) {
    const Created cancelled = Create(program, Input(*program, 0));
    EXPECT_TRUE(cancelled.run->Cancel());
    EXPECT_FALSE(cancelled.results[2]->resolved());
    const Created next = Start(program, cancelled.results[2]);
    EXPECT_EQ(Await(next).code(), absl::StatusCode::kCancelled);
    Enqueue(cancelled, 1);
    EXPECT_EQ(Await(cancelled).code(), absl::StatusCode::kCancelled);
  }
}

}  // namespace
}  // namespace kiln::runtime
