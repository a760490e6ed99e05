#include "server/fairness/host_work.h"

#include "gtest/gtest.h"

namespace kiln::fairness {
namespace {

TEST(HostWork, IsThereFromItsBeginningToItsEnd) {
  absl::Time now = absl::UnixEpoch();
  HostWork work([&] { return now; });
  int seen = 0;
  work.SetObserver([&] { ++seen; });
  EXPECT_FALSE(work.users_work().is_there);
  EXPECT_EQ(work.users_work().last, absl::UnixEpoch());
  {
    now += absl::Seconds(1);
    const HostWork::Piece first(&work), second(&work);
    now += absl::Seconds(1);
    EXPECT_TRUE(work.users_work().is_there);
    EXPECT_EQ(work.users_work().last, absl::UnixEpoch() + absl::Seconds(1));
    EXPECT_EQ(seen, 2);
  }
  EXPECT_FALSE(work.users_work().is_there);
  EXPECT_EQ(work.users_work().last, now);
  EXPECT_EQ(seen, 4);
  now += absl::Seconds(1);
  work.Touch();
  EXPECT_FALSE(work.users_work().is_there);
  EXPECT_EQ(work.users_work().last, now);
  work.SetObserver(nullptr);
  work.Touch();
  EXPECT_EQ(seen, 5);
  const HostWork::Piece none(nullptr);
}

}  // namespace
}  // namespace kiln::fairness
