// The text form of schedules.
#include "compiler/schedule/schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace kiln::schedule {
namespace {

using testing::HasSubstr;

constexpr char kEveryDirective[] =
    "fuse 0 1\n"
    "pad 4 16\n"
    "split 4 64\n"
    "order -1\n"
    "order 0 5 6 2 3\n"
    "bind 5 task\n"
    "bind 6 vector\n"
    "bind 2 unroll\n"
    "bind 3 serial\n"
    "bind 7 thread\n"
    "bind 8 matrix\n"
    "ahead 3\n"
    "partial 2\n"
    "stage 0 1 -1 16 2 1*3+-1*5 7\n"
    "stage 0 0 3 4 -1*2 2*6\n"
    "stream 0\n"
    "skip 0\n"
    "prefetch 0 1 2 16\n";

TEST(ScheduleText, EveryDirectiveReadsBack) {
  auto schedule = Parse(kEveryDirective);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->directives.size(), 18);
  EXPECT_EQ(Print(*schedule), kEveryDirective);
}

TEST(ScheduleText, EmptyLinesAndSpacesDoNotCount) {
  auto schedule = Parse("\n  split   1  8 \n\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(Print(*schedule), "split 1 8\n");
}

TEST(ScheduleText, MistakesAreNamed) {
  const struct {
    const char* text;
    const char* message;
  } mistakes[] = {
      {"split 1 8\nturn 3", "line 2 'turn 3': unknown directive 'turn'"},
      {"split 1", "takes 2 numbers"},
      {"prefetch 1", "takes 4 numbers"},
      {"split 1 x", "'x' is not a number"},
      {"bind 1 sideways", "'sideways' is not serial, task, unroll, vector, thread or matrix"},
      {"bind 1", "bind takes an axis and a binding"},
      {"stage 0 1 2", "stage takes"},
      {"stage 0 1 2 16 1*y", "'y' is not a number"},
      {"order", "takes 1 or more numbers"},
      {"bind x task", "'x' is not a number"},
      {"fuse 1", "takes 2 numbers"},
      {"fuse 1 2 3", "takes 2 numbers"},
      {"pad 1", "takes 2 numbers"},
      {"ahead x", "'x' is not a number"},
      {"partial x", "'x' is not a number"},
      {"prefetch 1 2 3", "takes 4 numbers"},
      {"stage a 1 2 16 1", "'a' is not a number"},
      {"stream x", "'x' is not a number"},
      {"skip x", "'x' is not a number"},
  };
  for (const auto& mistake : mistakes) {
    auto schedule = Parse(mistake.text);
    ASSERT_FALSE(schedule.ok()) << mistake.text;
    EXPECT_EQ(schedule.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(schedule.status().message()), HasSubstr(mistake.message));
  }
}

}  // namespace
}  // namespace kiln::schedule
