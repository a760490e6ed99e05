#include "server/sessions/checkpoint/copy_deadline.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

void Start(CopyDeadline::Done done) { done(absl::OkStatus()); }

TEST(CopyDeadline, TellsHowACopyEnded) {
  CopyDeadline deadline(absl::InfiniteDuration());
  EXPECT_TRUE(deadline.Await(Start).ok());
  std::thread device;
  EXPECT_TRUE(absl::IsInternal(deadline.Await([&](CopyDeadline::Done done) {
    device = std::thread([done = std::move(done)] { done(absl::InternalError("it failed")); });
  })));
  device.join();
}

// A device that hangs is waited for once, however many copies follow.
TEST(CopyDeadline, RunsOutOnce) {
  CopyDeadline deadline(absl::Milliseconds(1));
  CopyDeadline::Done late;
  const auto hang = [&](CopyDeadline::Done done) { late = std::move(done); };
  EXPECT_TRUE(absl::IsDeadlineExceeded(deadline.Await(hang)));
  late(absl::OkStatus());  // ignored
  EXPECT_TRUE(deadline.Await(Start).ok()) << "what needs no waiting is done";
  CopyDeadline another(absl::InfiniteDuration());
  another.Cancel();
  EXPECT_TRUE(absl::IsDeadlineExceeded(another.Await(hang)));
}

TEST(CopyDeadline, WhoWaitsCanBeStopped) {
  CopyDeadline deadline(absl::InfiniteDuration());
  absl::Notification waits;
  std::thread stops([&] {
    waits.WaitForNotification();
    deadline.Cancel();
  });
  EXPECT_TRUE(
      absl::IsDeadlineExceeded(deadline.Await([&](CopyDeadline::Done) { waits.Notify(); })));
  stops.join();
}

// The CopyDeadline may be destroyed before a copy ends.
TEST(CopyDeadline, ACopyMayOutliveIt) {
  CopyDeadline::Done late;
  {
    CopyDeadline deadline(absl::Milliseconds(1));
    EXPECT_FALSE(deadline.Await([&](CopyDeadline::Done done) { late = std::move(done); }).ok());
  }
  late(absl::OkStatus());
}

}  // namespace
}  // namespace kiln::sessions
