// Work that follows a run on several devices in its flow, and stopping a run that takes too long.
#include <atomic>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "drivers/cpu/driver.h"
#include "gtest/gtest.h"
#include "server/runtime/testing/multi_device_fixture.h"
#include "server/testing/faulty_device.h"

namespace kiln::runtime {
namespace {

using kiln::testing::FaultyDevice;
using kiln::testing::MeanGraph;
using kiln::testing::MeanGraphOnOne;
using kiln::testing::MultiDeviceTest;
using kiln::testing::StagesGraph;

class MultiDeviceFlowTest : public MultiDeviceTest {
 protected:
  ~MultiDeviceFlowTest() override {
    for (auto& device : devices_) EXPECT_TRUE(device->WaitIdle(absl::InfiniteDuration()));
    devices_.clear();
  }
  static std::vector<std::unique_ptr<drivers::Device>> TwoCpus() {
    std::string why_none;
    return *drivers::cpu::CpuDriver({.devices = 2, .threads_per_device = 1}).Enumerate(&why_none);
  }
};

// The parameter is the piece.
class MultiDeviceStopTest : public MultiDeviceFlowTest, public ::testing::WithParamInterface<int> {
 protected:
  absl::Notification reached_;
  absl::Notification go_on_;
  std::atomic<int> kernels_ = 0;
};

TEST_P(MultiDeviceStopTest, WhatTakesTooLongIsStopped) {
  CutAll();
  auto cpus = TwoCpus();
  const auto hold_up = [this](const drivers::Command& command) {
    if (std::holds_alternative<drivers::LaunchCommand>(command) && ++kernels_ == GetParam()) {
      reached_.Notify();
      go_on_.WaitForNotification();
    }
    return absl::OkStatus();
  };
  UseDevice(std::make_unique<FaultyDevice>(std::move(cpus[0]), hold_up));
  UseDevice(std::move(cpus[1]));
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  Created run = Start(bound, Input(*bound, 0));
  run.work.clear();  // a session does not keep it either
  reached_.WaitForNotification();
  devices_[0]->dispatcher().StopInFlight(absl::ResourceExhaustedError("too long"));
  go_on_.Notify();
  EXPECT_EQ(Await(run).code(), absl::StatusCode::kResourceExhausted);
}

INSTANTIATE_TEST_SUITE_P(Piece, MultiDeviceStopTest, ::testing::Values(1, 2));

// Delays the thread that submits a joint list to it.
class SlowToSubmit : public FaultyDevice {
 public:
  using FaultyDevice::FaultyDevice;
  absl::Status Submit(drivers::PreparedList& list, absl::Span<drivers::Buffer* const> slots,
                      drivers::SubmitOptions options,
                      std::function<void(drivers::SubmitResult)> done) override {
    if (options.group != nullptr) {
      has_come.Notify();
      go_on.WaitForNotification();
    }
    return FaultyDevice::Submit(list, slots, std::move(options), std::move(done));
  }
  absl::Notification has_come;
  absl::Notification go_on;
};

// A run on one device reads results of the joint run before it. Its flow may continue there only
// after the joint run's list has been submitted.
TEST_F(MultiDeviceFlowTest, NothingOvertakesAJointRun) {
  auto cpus = TwoCpus();
  absl::Notification let_go;
  limits_.in_flight_max = 1;
  auto slow = std::make_unique<SlowToSubmit>(std::move(cpus[0]), [&](const drivers::Command&) {
    let_go.WaitForNotification();
    return absl::OkStatus();
  });
  SlowToSubmit& first = *slow;
  UseDevice(std::move(slow));
  limits_ = {};
  UseDevice(std::move(cpus[1]));
  const auto joint = Compile(StagesGraph(2, 8), {0, 1});
  const auto others = Compile(MeanGraphOnOne(), {0});
  const auto twice = Compile(
      "input 0 float32[1,8]\n%0 = input float32[1,8] index=0\n%1 = add float32[1,8] %0 %0\n"
      "output %1\n",
      {1});
  ASSERT_TRUE(joint && others && twice) << compiled_;
  const ValuePointer rows = Input(*joint, 0);
  // While the first device is busy, the joint run is parked on the second.
  const Created busy = Start(others, Input(*others, 0), 1);
  const Created run = Create(joint, rows);
  const Created next = Create(twice, run.results[1]);
  Enqueue(run, 0);
  let_go.Notify();
  first.has_come.WaitForNotification();
  Enqueue(next, 0);
  first.go_on.Notify();
  for (const Created& each : {busy, run, next}) ASSERT_TRUE(Await(each).ok()) << *each.status;
  const std::vector<float> sums = Whole(*run.results[1]);
  const std::vector<float> doubled = Whole(*next.results[0]);
  for (int c = 0; c < 8; ++c) {
    EXPECT_EQ(sums[c], static_cast<float>(224 + 8 * c));
    EXPECT_EQ(doubled[c], 2 * sums[c]);
  }
}

}  // namespace
}  // namespace kiln::runtime
