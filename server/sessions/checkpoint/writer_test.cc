#include "server/sessions/checkpoint/writer.h"

#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "tests/eventually.h"

namespace kiln::sessions {
namespace {

TEST(CheckpointWriter, StopsWithNoSession) {
  CheckpointWriter writer(absl::Seconds(1));
  writer.Stop();
}

TEST(CheckpointWriter, StopsOnceAllSessionsHaveEnded) {
  CheckpointWriter writer(absl::Seconds(1));
  writer.Add(std::shared_ptr<Session>());
  EXPECT_TRUE(testing::Eventually([&] { return writer.IsIdle(); }));
  writer.Stop();
}

TEST(CheckpointWriter, TakesASessionAfterAllHaveEnded) {
  CheckpointWriter writer(absl::Seconds(1));
  for (int i = 0; i < 2; ++i) {
    writer.Add(std::shared_ptr<Session>());
    EXPECT_TRUE(testing::Eventually([&] { return writer.IsIdle(); }));
  }
  writer.Stop();
}

}  // namespace
}  // namespace kiln::sessions
