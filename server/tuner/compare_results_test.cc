#include "server/tuner/compare_results.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

using ::testing::HasSubstr;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

class CompareResultsTest : public ::testing::Test {
 protected:
  const kernel::Kernel& Parse(const std::string& text) {
    auto kernel = kernel::ParseKernel(text, context_);
    EXPECT_TRUE(kernel.ok()) << kernel.status();
    kernel_ = *std::move(kernel);
    return kernel_;
  }
  const kernel::Kernel& Sum(const std::string& dtype, int64_t terms) {
    const std::string n = std::to_string(terms), all = std::to_string(4 * terms);
    return Parse("buffer b0 " + dtype + "[" + all + "] read\nbuffer b1 " + dtype +
                 "[4] write\nstage r0:4 reduce r1:" + n + "\n  b1[r0] = sum(b0[r0*" + n +
                 " + r1])\n");
  }

  ir::Context context_;
  kernel::Kernel kernel_;
};

template <typename T>
Outputs Of(const std::vector<T>& values) {
  std::vector<char> bytes(values.size() * sizeof(T));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return {{1, bytes}};
}

TEST_F(CompareResultsTest, TheToleranceDependsOnDtypeAndTerms) {
  const double few = ToleranceOf(Sum("float32", 4));
  const double many = ToleranceOf(Sum("float32", 40'000));
  EXPECT_GT(few, 1e-7);
  EXPECT_LT(few, 1e-5);
  EXPECT_GT(many, 10 * few);
  EXPECT_LT(many, 100 * few);
  EXPECT_GT(ToleranceOf(Sum("bfloat16", 4)), 1000 * few);
  EXPECT_LT(ToleranceOf(Sum("float64", 4)), few / 1000);
  EXPECT_EQ(ToleranceOf(Sum("int32", 4)), 0);
}

TEST_F(CompareResultsTest, FloatsMayDifferByTheTolerance) {
  const kernel::Kernel& kernel = Sum("float32", 4);
  const Outputs want = Of<float>({1, 2, 3, 4});
  EXPECT_TRUE(CompareResults(kernel, want, Of<float>({1, 2, 3.0001F, 4}), 1e-3).ok());
  const absl::Status status = CompareResults(kernel, want, Of<float>({1, 2, 3.1F, 4}), 1e-3);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(status.message(), HasSubstr("element 2 of buffer b1 is 3.0999999 instead of 3"));
}

TEST_F(CompareResultsTest, ASumThatCancelsOutHasTheErrorOfItsTerms) {
  const kernel::Kernel& kernel = Sum("float32", 4);
  const Outputs want = Of<float>({0, 200, 300, 400});
  EXPECT_TRUE(CompareResults(kernel, want, Of<float>({0.01F, 200, 300, 400}), 1e-3).ok());
  EXPECT_FALSE(CompareResults(kernel, want, Of<float>({1, 200, 300, 400}), 1e-3).ok());
}

TEST_F(CompareResultsTest, InfinitiesAndNanEqualOnlyThemselves) {
  const kernel::Kernel& kernel = Sum("float64", 4);
  const Outputs want = Of<double>({kInfinity, -kInfinity, kNan, 4});
  EXPECT_TRUE(CompareResults(kernel, want, Of<double>({kInfinity, -kInfinity, -kNan, 4}), 1).ok());
  EXPECT_FALSE(CompareResults(kernel, want, Of<double>({-kInfinity, -kInfinity, kNan, 4}), 1).ok());
  EXPECT_FALSE(CompareResults(kernel, want, Of<double>({kInfinity, 1e300, kNan, 4}), 1).ok());
  EXPECT_FALSE(CompareResults(kernel, want, Of<double>({kInfinity, -kInfinity, 0, 4}), 1).ok());
  EXPECT_FALSE(
      CompareResults(kernel, want, Of<double>({kInfinity, -kInfinity, kNan, kNan}), 1).ok());
}

TEST_F(CompareResultsTest, ASpreadAllowsMore) {
  const kernel::Kernel& kernel = Sum("float32", 4);
  const Outputs want = Of<float>({1, 2, 3, 4});
  const Outputs got = Of<float>({1, 2, 3.1F, 4});
  Spread spread;
  AddSpread(kernel, want, Of<float>({1, 2, 3.01F, 4}), &spread);
  EXPECT_FALSE(CompareResults(kernel, want, got, 1e-3, spread).ok());
  AddSpread(kernel, want, Of<float>({1, 2, 2.97F, 4}), &spread);
  EXPECT_TRUE(CompareResults(kernel, want, got, 1e-3, spread).ok());
  // Elements near it get a part of its spread, and infinities change nothing.
  EXPECT_FALSE(CompareResults(kernel, want, Of<float>({1, 2.1F, 3, 4}), 1e-3, spread).ok());
  EXPECT_TRUE(CompareResults(kernel, want, Of<float>({1, 2.05F, 3, 4}), 1e-3, spread).ok());
  AddSpread(kernel, want, Of<float>({1, static_cast<float>(kInfinity), 3, 4}), &spread);
  EXPECT_FALSE(CompareResults(kernel, want, Of<float>({1, 2.1F, 3, 4}), 1e-3, spread).ok());
}

TEST_F(CompareResultsTest, IntegersMustBeEqual) {
  const kernel::Kernel& kernel = Sum("int32", 4);
  EXPECT_TRUE(CompareResults(kernel, Of<int>({1, 2, 3, 4}), Of<int>({1, 2, 3, 4}), 1).ok());
  EXPECT_FALSE(CompareResults(kernel, Of<int>({1, 2, 3, 4}), Of<int>({1, 2, 3, 5}), 1).ok());
}

}  // namespace
}  // namespace kiln::tuner
