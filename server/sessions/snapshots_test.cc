#include "server/sessions/snapshots.h"

#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::sessions {
namespace {

TEST(Snapshots, StopsWithNoSession) {
  Snapshots snapshots(absl::Seconds(1));
  snapshots.Stop();
}

TEST(Snapshots, StopsOnceAllSessionsHaveEnded) {
  Snapshots snapshots(absl::Seconds(1));
  snapshots.Add(std::shared_ptr<Session>());
  EXPECT_TRUE(testing::Eventually([&] { return snapshots.IsIdle(); }));
  snapshots.Stop();
}

TEST(Snapshots, TakesASessionAfterAllHaveEnded) {
  Snapshots snapshots(absl::Seconds(1));
  for (int i = 0; i < 2; ++i) {
    snapshots.Add(std::shared_ptr<Session>());
    EXPECT_TRUE(testing::Eventually([&] { return snapshots.IsIdle(); }));
  }
  snapshots.Stop();
}

}  // namespace
}  // namespace kiln::sessions
