#include "server/tuner/neighbours.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

std::string Exponential(int elements, const char* dtype = "float32") {
  return absl::StrCat("buffer b0 ", dtype, "[", elements, "] read\nbuffer b1 ", dtype, "[",
                      elements, "] write\nstage r0:", elements, "\n  b1[r0] = exp2(b0[r0])\n");
}

TEST(NeighboursTest, TheNearestIsFoundOnItsHardware) {
  Neighbours index(100, 10'000);
  index.Put("here", Exponential(800), "800\n");
  index.Put("here", Exponential(100), "100\n");
  index.Put("there", Exponential(300), "300\n");
  index.Put("here", Exponential(300, "float64"), "double\n");
  EXPECT_EQ(index.Nearest({"here"}, Exponential(300)), "800\n");
  EXPECT_EQ(index.Nearest({"here", "there"}, Exponential(250)), "300\n");
  // Its own setting is no neighbour's.
  EXPECT_EQ(index.Nearest({"here"}, Exponential(800)), "100\n");
  EXPECT_EQ(index.Nearest({"there"}, Exponential(300)), std::nullopt);
  EXPECT_EQ(index.Nearest({"nowhere"}, Exponential(300)), std::nullopt);
}

TEST(NeighboursTest, ASettingIsReplacedAndRemoved) {
  Neighbours index(100, 10'000);
  index.Put("here", Exponential(800), "first\n");
  index.Put("here", Exponential(800), "second\n");
  EXPECT_EQ(index.size(), 1);
  EXPECT_EQ(index.Nearest({"here"}, Exponential(900)), "second\n");
  index.Put("here", Exponential(800), "");
  EXPECT_EQ(index.size(), 0);
  EXPECT_EQ(index.bytes(), 0);
  EXPECT_EQ(index.Nearest({"here"}, Exponential(900)), std::nullopt);
}

TEST(NeighboursTest, BeyondItsBoundsTheFirstGo) {
  Neighbours few(3, 10'000);
  for (int i = 1; i <= 9; ++i) few.Put("here", Exponential(i), absl::StrCat(i, "\n"));
  EXPECT_EQ(few.size(), 3);
  EXPECT_EQ(few.Nearest({"here"}, Exponential(10)), "9\n");
  few.Put("here", Exponential(20), "");
  EXPECT_EQ(few.Nearest({"here"}, Exponential(1)), "7\n");
  // An extent and a setting.
  Neighbours small(100, 3 * (sizeof(double) + 2));
  for (int i = 1; i <= 9; ++i) small.Put("here", Exponential(i), absl::StrCat(i, "\n"));
  EXPECT_EQ(small.size(), 3);
  EXPECT_EQ(small.bytes(), 3 * (sizeof(double) + 2));
  small.Put("here", Exponential(50), std::string(100, 'x'));
  EXPECT_EQ(small.size(), 0);
}

TEST(NeighboursTest, AKernelWithTooManyLoopsHasNoPlace) {
  std::string kernel = "stage";
  for (size_t i = 0; i <= Neighbours::kLoopsMax; ++i) absl::StrAppend(&kernel, " r", i, ":2");
  Neighbours index(100, 10'000);
  index.Put("here", kernel + "\n", "many\n");
  EXPECT_EQ(index.size(), 0);
}

}  // namespace
}  // namespace kiln::tuner
