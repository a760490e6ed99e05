#include "server/sessions/closed_sessions.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "proto/digest/sha256.h"
#include "server/errors/errors.h"

namespace kiln::sessions {
namespace {

absl::Status Why(int number) { return absl::NotFoundError(absl::StrCat("why ", number)); }

TEST(ClosedSessions, TellTheirUserAlone) {
  ClosedSessions ended;
  ended.Remember("id", "ann", Why(1));
  EXPECT_EQ(ended.Find("id", "ann"), Why(1));
  EXPECT_TRUE(ended.Find("id", "bob").ok());
  EXPECT_TRUE(ended.Find("other", "ann").ok());
  ended.Remember("id", "ann", Why(2));
  EXPECT_EQ(ended.Find("id", "ann"), Why(2));
}

TEST(ClosedSessions, OneUserPushesOutHisOwnAlone) {
  ClosedSessions ended;
  ended.Remember("hers", "ann", Why(0));
  for (size_t i = 0; i <= ClosedSessions::kUserEntriesMax; ++i)
    ended.Remember(absl::StrCat(i), "bob", Why(1));
  EXPECT_FALSE(ended.Find("hers", "ann").ok());
  EXPECT_TRUE(ended.Find("0", "bob").ok());
  EXPECT_FALSE(ended.Find("1", "bob").ok());
}

TEST(ClosedSessions, AreSoManyAtMost) {
  ClosedSessions ended;
  for (size_t i = 0; i <= ClosedSessions::kEntriesMax; ++i)
    ended.Remember(absl::StrCat(i), absl::StrCat("user ", i), Why(1));
  EXPECT_TRUE(ended.Find("0", "user 0").ok());
  EXPECT_FALSE(ended.Find("1", "user 1").ok());
}

TEST(ClosedSessions, AFileWithAnotherDigestIsDamaged) {
  const std::string path = ::testing::TempDir() + "/closed_with_line_feed";
  ClosedSessions ended;
  ended.Remember("session", "ann", Why(1));
  ASSERT_TRUE(ended.Save(path).ok());
  EXPECT_TRUE(ClosedSessions().Load(path).ok());
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  const std::string digest = Sha256Hex("session");
  std::ofstream(path) << absl::StrReplaceAll(text.str(), {{digest, digest.substr(2) + "\\n"}});
  EXPECT_FALSE(ClosedSessions().Load(path).ok());
}

TEST(ClosedSessions, AMessageHasABound) {
  ClosedSessions ended;
  ended.Remember("id", "ann", absl::NotFoundError(std::string(100'000, 'x')));
  EXPECT_LE(ended.Find("id", "ann").message().size(), 1000);
}

TEST(ClosedSessions, AreRememberedByTheNextDaemon) {
  const std::string path = ::testing::TempDir() + "/closed_sessions";
  std::filesystem::remove(path);
  ClosedSessions none;
  EXPECT_TRUE(none.Load(path).ok());
  ClosedSessions ended;
  const absl::Status why = LostBecause(
      "it\tcould\nnot", errors::WithReason(absl::ResourceExhaustedError("\"full\\"), "QUOTA"));
  ended.Remember("id", "ann\t\n1", why);
  ended.Remember("other", "bob", Why(2));
  ASSERT_TRUE(ended.Save(path).ok());
  ClosedSessions next;
  ASSERT_TRUE(next.Load(path).ok());
  EXPECT_EQ(next.Find("id", "ann\t\n1"), why);
  EXPECT_EQ(next.Find("other", "bob").message(), Why(2).message());
  std::ofstream(path, std::ios::app) << "more\n";
  EXPECT_TRUE(absl::IsDataLoss(ClosedSessions().Load(path)));
}

TEST(ClosedSessions, WhatIsTheDaemonsOwnIsInItsLog) {
  const absl::Status status =
      LostBecause("it failed", absl::DataLossError("/var/lib/x is damaged"));
  EXPECT_EQ(status.message().find("/var"), std::string::npos) << status;
  EXPECT_NE(status.message().find("see session_lost"), std::string::npos) << status;
}

}  // namespace
}  // namespace kiln::sessions
