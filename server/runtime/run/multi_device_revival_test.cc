// A device is revived after runs on several devices: others may still read its memory.
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "drivers/cpu/driver.h"
#include "gtest/gtest.h"
#include "server/runtime/testing/multi_device_fixture.h"
#include "server/testing/faulty_device.h"

namespace kiln::runtime {
namespace {

using kiln::testing::FaultyDevice;
using kiln::testing::MeanGraph;
using kiln::testing::MeanGraphOnOne;

// Two processors. The second one delays its work after the first exchange, until a test has lost
// the first one there.
class MultiDeviceRevival : public kiln::testing::MultiDeviceTest {
 protected:
  MultiDeviceRevival() {
    std::string why_none;
    drivers::cpu::CpuDriver driver({.devices = 2, .threads_per_device = 1});
    auto devices = *driver.Enumerate(&why_none);
    auto first = std::make_unique<FaultyDevice>(
        std::move(devices[0]), [this](const drivers::Command& command) {
          if (is_unplugged_) return absl::InternalError("unplugged");
          if (!IsBehindWait(command, &first_has_waited_) || !loses_there_) return absl::OkStatus();
          is_lost_.WaitForNotification();
          return absl::InternalError("unplugged");
        });
    first_ = first.get();
    UseDevice(std::move(first));
    UseDevice(std::make_unique<FaultyDevice>(std::move(devices[1]),
                                             [this](const drivers::Command& command) {
                                               if (!IsBehindWait(command, &second_has_waited_))
                                                 return absl::OkStatus();
                                               reads_.Notify();
                                               has_read_.WaitForNotification();
                                               return absl::OkStatus();
                                             }));
  }
  // Matches the first kernel after the wait.
  static bool IsBehindWait(const drivers::Command& command, bool* has_waited) {
    if (std::holds_alternative<drivers::WaitCommand>(command)) *has_waited = true;
    return std::holds_alternative<drivers::LaunchCommand>(command) &&
           std::exchange(*has_waited, false);
  }

  FaultyDevice* first_ = nullptr;
  bool first_has_waited_ = false;
  bool second_has_waited_ = false;
  std::atomic<bool> loses_there_ = true;
  std::atomic<bool> is_unplugged_ = false;  // lost with the next command
  absl::Notification is_lost_;
  absl::Notification reads_;
  absl::Notification has_read_;
};

// Others read its published data, which is gone once it is revived.
TEST_F(MultiDeviceRevival, AwaitsTheEndOfItsRunsEverywhere) {
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  ASSERT_NE(bound, nullptr) << compiled_;
  const Created run = Start(bound, Input(*bound, 0));
  reads_.WaitForNotification();
  is_lost_.Notify();
  EXPECT_TRUE(devices_[0]->dispatcher().WaitIdle(absl::InfiniteDuration())) << "its own list";
  EXPECT_EQ(devices_[0]->health(), Health::kFailed);
  first_->Mend();
  EXPECT_FALSE(devices_[0]->WaitIdle(absl::ZeroDuration()));
  EXPECT_FALSE(devices_[0]->TryRevive());
  has_read_.Notify();
  EXPECT_EQ(Await(run).code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(devices_[0]->WaitIdle(absl::InfiniteDuration()));
  EXPECT_TRUE(devices_[0]->TryRevive());
}

// The same if its own list has ended before it is lost: the run was given up, and another list
// notices the loss.
TEST_F(MultiDeviceRevival, AwaitsThemBehindItsOwnList) {
  loses_there_ = false;
  const auto bound = Compile(MeanGraph(2, 8), {0, 1});
  const auto alone = Compile(MeanGraphOnOne(), {0});
  ASSERT_NE(bound, nullptr) << compiled_;
  ASSERT_NE(alone, nullptr) << compiled_;
  const ValuePointer input = Input(*alone, 0);
  const Created run = Start(bound, Input(*bound, 0));
  reads_.WaitForNotification();
  run.run->Stop(absl::CancelledError("given up"));
  // Lists of a device run one after another, so the joint run's list has ended there.
  EXPECT_TRUE(Await(Start(alone, input)).ok());
  is_unplugged_ = true;
  EXPECT_EQ(Await(Start(alone, input)).code(), absl::StatusCode::kUnavailable);
  is_unplugged_ = false;
  first_->Mend();
  EXPECT_TRUE(devices_[0]->dispatcher().WaitIdle(absl::InfiniteDuration())) << "its own lists";
  EXPECT_FALSE(devices_[0]->WaitIdle(absl::ZeroDuration()));
  EXPECT_FALSE(devices_[0]->TryRevive());
  has_read_.Notify();
  EXPECT_EQ(Await(run).code(), absl::StatusCode::kCancelled);
  EXPECT_TRUE(devices_[0]->WaitIdle(absl::InfiniteDuration()));
  EXPECT_TRUE(devices_[0]->TryRevive());
}

}  // namespace
}  // namespace kiln::runtime
