#include "drivers/common/queued_device/in_flight.h"

#include <atomic>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::drivers {
namespace {

char buffers[3];

TEST(InFlightTest, NoMoreListsThanThereIsRoomFor) {
  InFlight in_flight(2);
  in_flight.Enqueue();
  in_flight.Enqueue();
  absl::Notification third;
  std::thread waits([&] {
    in_flight.Enqueue();
    third.Notify();
  });
  EXPECT_TRUE(kiln::testing::Eventually(
      [&] { return in_flight.waiting() == 1 || third.HasBeenNotified(); }));
  EXPECT_FALSE(third.HasBeenNotified());
  in_flight.End();
  third.WaitForNotification();
  waits.join();
}

TEST(InFlightTest, AListWaitsForCopiesToItsBuffersAlone) {
  InFlight in_flight(1);
  in_flight.StartCopy(&buffers[0]);
  in_flight.StartCopy(&buffers[0]);
  in_flight.StartCopy(nullptr);  // writes no buffer
  in_flight.AwaitCopiesTo({&buffers[1], &buffers[2]});
  absl::Notification passed;
  std::thread waits([&] {
    in_flight.AwaitCopiesTo({&buffers[1], &buffers[0]});
    passed.Notify();
  });
  in_flight.ReportCopy(&buffers[0]);
  EXPECT_TRUE(kiln::testing::Eventually(
      [&] { return in_flight.waiting() == 1 || passed.HasBeenNotified(); }));
  EXPECT_FALSE(passed.HasBeenNotified());
  in_flight.ReportCopy(&buffers[0]);
  passed.WaitForNotification();
  waits.join();
}

TEST(InFlightTest, TheEndIsWhenAllIsReported) {
  InFlight in_flight(1);
  in_flight.AwaitAll();
  in_flight.Submit();
  in_flight.StartCopy(nullptr);
  std::atomic<bool> reported = false;
  std::thread reports([&] {
    in_flight.ReportCopy(nullptr);
    reported = true;
    in_flight.Report();
  });
  in_flight.AwaitAll();
  EXPECT_TRUE(reported);
  reports.join();
}

}  // namespace
}  // namespace kiln::drivers
