#include "proto/check/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace kiln {
namespace {

enum class Colour { kRed = 3, kBlue = 4 };

struct Unprintable {
  int value;
  bool operator==(const Unprintable&) const = default;
};

// Counts how often it was validated.
struct CountedTable {
  mutable int validated = 0;
  void Validate() const { ++validated; }
};

TEST(CheckTest, WhatHoldsCostsNoMessage) {
  int evaluated = 0;
  const auto note = [&] { return ++evaluated; };
  KILN_CHECK(true) << note();
  KILN_CHECK_EQ(1, 1) << note();
  KILN_CHECK_LT(1, 2) << note();
  EXPECT_EQ(evaluated, 0);
}

TEST(CheckTest, EvaluatesItsOperandsOnce) {
  int calls = 0;
  KILN_CHECK(++calls == 1);
  KILN_CHECK_EQ(++calls, 2);
  EXPECT_EQ(calls, 2);
}

TEST(CheckTest, TakesPointersThatCannotBeCopied) {
  const std::unique_ptr<int> one = std::make_unique<int>(1);
  KILN_CHECK_NE(one, nullptr);
  KILN_CHECK_EQ(*one, 1);
}

TEST(CheckTest, ComparesIntegersByValue) {
  KILN_CHECK_LT(-1, size_t{1});
  KILN_CHECK_GT(uint64_t{1} << 63, int64_t{-1});
  KILN_CHECK_NE(-1, ~uint64_t{0});
  KILN_CHECK_EQ(std::vector<int>(3).size(), 3);
}

TEST(CheckTest, IsOneStatement) {
  bool other = false;
  if (false)
    KILN_CHECK(false);
  else
    other = true;
  EXPECT_TRUE(other);
  other = false;
  if (false)
    KILN_CHECK_EQ(1, 2) << "note";
  else
    other = true;
  EXPECT_TRUE(other);
}

TEST(CheckDeathTest, NamesPlaceConditionValuesAndNote) {
  const int held = 3;
  EXPECT_DEATH(KILN_CHECK(held == 0), "check_test.cc:[0-9]+: invariant violated: held == 0");
  EXPECT_DEATH(KILN_CHECK(held == 0) << "user " << 7, "held == 0: user 7");
  EXPECT_DEATH(KILN_CHECK_EQ(held, 0) << "not returned", "held == 0 \\(3 and 0\\): not returned");
  EXPECT_DEATH(KILN_CHECK_NE(held, 3), "held != 3 \\(3 and 3\\)");
  EXPECT_DEATH(KILN_CHECK_LT(held, 3), "held < 3");
  EXPECT_DEATH(KILN_CHECK_LE(held, 2), "held <= 2");
  EXPECT_DEATH(KILN_CHECK_GT(held, 3), "held > 3");
  EXPECT_DEATH(KILN_CHECK_GE(held, 4), "held >= 4");
}

TEST(CheckDeathTest, PrintsEnumsBytesAndWhatHasNoText) {
  EXPECT_DEATH(KILN_CHECK_EQ(Colour::kRed, Colour::kBlue), "\\(3 and 4\\)");
  EXPECT_DEATH(KILN_CHECK_EQ(uint8_t{65}, uint8_t{66}), "\\(65 and 66\\)");
  EXPECT_DEATH(KILN_CHECK_EQ(std::string("a"), "b"), "\\(a and b\\)");
  EXPECT_DEATH(KILN_CHECK_EQ(Unprintable{1}, Unprintable{2}), "\\(\\? and \\?\\)");
}

TEST(CheckDeathTest, DebugChecksFollowTheBuild) {
  int evaluated = 0;
  KILN_DCHECK(++evaluated > 0);
  KILN_DCHECK_GT(++evaluated, 0);
#ifdef KILN_DEBUG_CHECKS
  EXPECT_EQ(evaluated, 2);
  EXPECT_DEATH(KILN_DCHECK_EQ(evaluated, 0), "evaluated == 0");
#else
  EXPECT_EQ(evaluated, 0);
#endif
}

TEST(ValidateTest, ValidatesEachOperationOfASmallTable) {
  CountedTable table;
  for (int i = 0; i < 10; ++i) KILN_VALIDATE(table, i);
  EXPECT_EQ(table.validated, 10);
}

TEST(ValidateTest, ValidatesALargeTableAsOftenAsItsSizeAllows) {
  CountedTable table;
  for (int i = 0; i < 1000; ++i) KILN_VALIDATE(table, 640);
  EXPECT_EQ(table.validated, 100);
}

}  // namespace
}  // namespace kiln
