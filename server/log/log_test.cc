#include "server/log/log.h"

#include "gtest/gtest.h"

namespace kiln::log {
namespace {

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

// The log is the process': what a test sets ends with it.
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

TEST_F(SharedLog, HasNoClockAndNoDebuggingUntilAsked) {
  testing::internal::CaptureStderr();
  Debug("hidden");
  Info("shown");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "time=1970-01-01T00:00:00.000Z level=info event=shown\n");
}

}  // namespace
}  // namespace kiln::log
