#include "server/sessions/snapshots.h"

#include <memory>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

// Long enough for the thread to see that its only session has ended, and to go to sleep; on a
// machine that is slower than that, the test shows less, and still passes.
constexpr absl::Duration kSeen = absl::Milliseconds(200);

TEST(Snapshots, StopsWithNoSession) {
  Snapshots snapshots(absl::Seconds(1));
  snapshots.Stop();
}

TEST(Snapshots, StopsOnceAllSessionsHaveEnded) {
  Snapshots snapshots(absl::Seconds(1));
  snapshots.Add(std::shared_ptr<Session>());
  absl::SleepFor(kSeen);
  snapshots.Stop();
}

TEST(Snapshots, TakesASessionAfterAllHaveEnded) {
  Snapshots snapshots(absl::Seconds(1));
  for (int i = 0; i < 2; ++i) {
    snapshots.Add(std::shared_ptr<Session>());
    absl::SleepFor(kSeen);
  }
  snapshots.Stop();
}

}  // namespace
}  // namespace kiln::sessions
