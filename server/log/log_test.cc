#include "server/log/log.h"

#include <algorithm>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/log/rate_limit.h"

namespace kiln::log {
namespace {

using ::testing::EndsWith;

TEST(Log, OneLineWithQuotedValues) {
  EXPECT_EQ(Format(absl::UnixEpoch(), Level::kInfo, "session_opened",
                   {{"session", "s3"}, {"client", "ann@laptop train.py"}, {"note", "a\"b\nc"}}),
            "time=1970-01-01T00:00:00.000Z level=info event=session_opened session=s3 "
            "client=\"ann@laptop train.py\" note=\"a\\\"b\\nc\"\n");
}

TEST(Log, WhatTurnsOrHidesTextIsEscaped) {
  const std::string line = Format(absl::UnixEpoch(), Level::kInfo, "x", {{"k", "a\u202eb\x1b"}});
  EXPECT_NE(line.find("k=\"a\\u{202E}b\\x1B\""), std::string::npos) << line;
}

TEST(Log, EmptyValueIsVisible) {
  EXPECT_NE(Format(absl::UnixEpoch(), Level::kError, "x", {{"k", ""}}).find("k=\"\""),
            std::string::npos);
}

TEST(Log, ParsesLevels) {
  Level level = Level::kInfo;
  EXPECT_TRUE(ParseLevel("warning", &level));
  EXPECT_EQ(level, Level::kWarning);
  EXPECT_FALSE(ParseLevel("loud", &level));
  EXPECT_EQ(level, Level::kWarning);
}

// The log is global to the process; this resets what a test has changed.
class SharedLog : public testing::Test {
 protected:
  void TearDown() override {
    SetLevel(Level::kInfo);
    SetClock(absl::UnixEpoch);
  }
};

TEST_F(SharedLog, WritesWhatIsOnAtTheClocksTime) {
  testing::internal::CaptureStderr();
  Debug("hidden");
  SetLevel(Level::kDebug);
  EXPECT_TRUE(IsOn(Level::kDebug));
  SetClock([] { return absl::UnixEpoch() + absl::Minutes(1); });
  Debug("shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "time=1970-01-01T00:01:00.000Z level=debug event=shown\n");
}

TEST(RateLimit, SaysHowManyItHeldBack) {
  RateLimit limit(2, absl::Minutes(1));
  const absl::Time start = absl::FromUnixSeconds(1000);
  EXPECT_EQ(limit.Admit(start), 0);
  EXPECT_EQ(limit.Admit(start), 0);
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limit.Admit(start));
  EXPECT_EQ(limit.Admit(start + absl::Minutes(1)), 5);
  EXPECT_EQ(limit.Admit(start + absl::Minutes(1)), 0);
}

TEST_F(SharedLog, AnEventFillsNoDisk) {
  testing::internal::CaptureStderr();
  for (int i = 0; i < kLinesOfAnEvent + 5; ++i) Info("noisy");
  Info("other");
  Error("noisy");
  SetClock([] { return absl::UnixEpoch() + absl::Minutes(1); });
  Warning("noisy", {{"key", "value"}});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), kLinesOfAnEvent + 3);
  EXPECT_THAT(
      text,
      EndsWith("level=info event=other\n"
               "time=1970-01-01T00:00:00.000Z level=error event=noisy\n"
               "time=1970-01-01T00:01:00.000Z level=warning event=noisy key=value unlogged=5\n"));
}

TEST_F(SharedLog, HasNoClockAndNoDebuggingUntilAsked) {
  testing::internal::CaptureStderr();
  Debug("hidden");
  Info("shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "time=1970-01-01T00:00:00.000Z level=info event=shown\n");
}

}  // namespace
}  // namespace kiln::log
