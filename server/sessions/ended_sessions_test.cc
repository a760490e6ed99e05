#include "server/sessions/ended_sessions.h"

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::sessions {
namespace {

absl::Status Why(int number) { return absl::NotFoundError(absl::StrCat("why ", number)); }

TEST(EndedSessions, TellTheirUserAlone) {
  EndedSessions ended;
  ended.Remember("id", "ann", Why(1));
  EXPECT_EQ(ended.Find("id", "ann"), Why(1));
  EXPECT_TRUE(ended.Find("id", "bob").ok());
  EXPECT_TRUE(ended.Find("other", "ann").ok());
  ended.Remember("id", "ann", Why(2));
  EXPECT_EQ(ended.Find("id", "ann"), Why(2));
}

TEST(EndedSessions, OneUserPushesOutHisOwnAlone) {
  EndedSessions ended;
  ended.Remember("hers", "ann", Why(0));
  for (size_t i = 0; i <= EndedSessions::kMostOfAUser; ++i)
    ended.Remember(absl::StrCat(i), "bob", Why(1));
  EXPECT_FALSE(ended.Find("hers", "ann").ok());
  EXPECT_TRUE(ended.Find("0", "bob").ok());
  EXPECT_FALSE(ended.Find("1", "bob").ok());
}

TEST(EndedSessions, AreSoManyAtMost) {
  EndedSessions ended;
  for (size_t i = 0; i <= EndedSessions::kMost; ++i)
    ended.Remember(absl::StrCat(i), absl::StrCat("user ", i), Why(1));
  EXPECT_TRUE(ended.Find("0", "user 0").ok());
  EXPECT_FALSE(ended.Find("1", "user 1").ok());
}

TEST(EndedSessions, AMessageHasABound) {
  EndedSessions ended;
  ended.Remember("id", "ann", absl::NotFoundError(std::string(100'000, 'x')));
  EXPECT_LE(ended.Find("id", "ann").message().size(), 1000);
}

}  // namespace
}  // namespace kiln::sessions
