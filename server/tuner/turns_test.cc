#include "server/tuner/turns.h"

#include <vector>

#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

TEST(Turns, MedianOfOddAndEvenNumbers) {
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(Median({7}), 7);
}

TEST(Turns, ASteadyMachineHasNoNoise) {
  const Ratio ratio = CompareTurns({1, 1, 1, 1, 1}, {0.5, 0.5, 0.5, 0.5, 0.5});
  EXPECT_DOUBLE_EQ(ratio.value, 0.5);
  EXPECT_DOUBLE_EQ(ratio.noise, 0);
}

TEST(Turns, AMachineThatSlowsDownSlowsBoth) {
  const Ratio ratio = CompareTurns({1, 1, 2, 2, 4}, {0.5, 0.5, 1, 1, 2});
  EXPECT_DOUBLE_EQ(ratio.value, 0.5);
  EXPECT_DOUBLE_EQ(ratio.noise, 0);
}

TEST(Turns, SingleDisturbedTurnsDoNotCount) {
  const Ratio ratio = CompareTurns({1, 9, 1, 1, 1}, {0.8, 0.8, 0.8, 7, 0.8});
  EXPECT_DOUBLE_EQ(ratio.value, 0.8);
  EXPECT_DOUBLE_EQ(ratio.noise, 0);
}

// More than half of the incumbent's turns were disturbed, and its least time shows it.
TEST(Turns, ACandidateMustBeFasterByMedianAndMinimum) {
  const Ratio ratio = CompareTurns({2, 1, 2, 2, 1}, {1, 1, 1, 1, 1});
  EXPECT_DOUBLE_EQ(ratio.value, 1);
  EXPECT_GE(ratio.noise, 0.25);
}

TEST(Turns, NoiseShrinksWithTheNumberOfTurns) {
  const std::vector<double> same(20, 1);
  std::vector<double> other;
  for (int i = 0; i < 20; ++i) other.push_back(i % 2 == 0 ? 0.95 : 1.05);
  const Ratio few = CompareTurns(absl::MakeSpan(same).first(4), absl::MakeSpan(other).first(4));
  const Ratio many = CompareTurns(same, other);
  EXPECT_GT(few.noise, many.noise);
  EXPECT_GT(many.noise, 0.02);
}

}  // namespace
}  // namespace kiln::tuner
