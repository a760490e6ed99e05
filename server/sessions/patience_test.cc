#include "server/sessions/patience.h"

#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

void Start(Patience::Done done) { done(absl::OkStatus()); }

TEST(Patience, TellsHowACopyEnded) {
  Patience patience(absl::InfiniteDuration());
  EXPECT_TRUE(patience.Await(Start).ok());
  std::thread device;
  EXPECT_TRUE(absl::IsInternal(patience.Await([&](Patience::Done done) {
    device = std::thread([done = std::move(done)] { done(absl::InternalError("it failed")); });
  })));
  device.join();
}

// A device that hangs is waited for once, however many copies follow.
TEST(Patience, RunsOutOnce) {
  Patience patience(absl::Milliseconds(1));
  Patience::Done late;
  const auto hang = [&](Patience::Done done) { late = std::move(done); };
  EXPECT_TRUE(absl::IsDeadlineExceeded(patience.Await(hang)));
  late(absl::OkStatus());  // ignored
  EXPECT_TRUE(patience.Await(Start).ok()) << "what needs no waiting is done";
  Patience another(absl::InfiniteDuration());
  another.GiveUp();
  EXPECT_TRUE(absl::IsDeadlineExceeded(another.Await(hang)));
}

TEST(Patience, WhoWaitsCanBeStopped) {
  Patience patience(absl::InfiniteDuration());
  absl::Notification waits;
  std::thread stops([&] {
    waits.WaitForNotification();
    patience.GiveUp();
  });
  EXPECT_TRUE(absl::IsDeadlineExceeded(patience.Await([&](Patience::Done) { waits.Notify(); })));
  stops.join();
}

// The Patience may be destroyed before a copy ends.
TEST(Patience, ACopyMayOutliveIt) {
  Patience::Done late;
  {
    Patience patience(absl::Milliseconds(1));
    EXPECT_FALSE(patience.Await([&](Patience::Done done) { late = std::move(done); }).ok());
  }
  late(absl::OkStatus());
}

}  // namespace
}  // namespace kiln::sessions
