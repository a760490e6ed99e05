#include "compiler/kernel/sample_inputs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace kiln::kernel {
namespace {

using ir::DType;

constexpr int64_t kElements = 100'000;

std::vector<double> Filled(Sample sample, DType dtype, bool whole = true) {
  std::vector<char> bytes(static_cast<size_t>(kElements * ir::SizeOf(dtype)));
  FillSample(sample, dtype, kElements, /*integer_bound=*/10, whole, /*seed=*/3, bytes.data());
  std::vector<double> values;
  for (int64_t i = 0; i < kElements; ++i) values.push_back(ElementAt(dtype, bytes.data(), i));
  return values;
}

// NaN is not equal to itself.
std::set<std::string> Distinct(const std::vector<double>& values) {
  std::set<std::string> distinct;
  for (const double value : values) distinct.insert(std::to_string(value));
  return distinct;
}

TEST(SampleInputs, RandomOnesAreWholeOrNot) {
  EXPECT_EQ(Distinct(Filled(Sample::kRandom, DType::kFloat32)),
            (std::set<std::string>{"-2.000000", "-1.000000", "1.000000", "2.000000"}));
  EXPECT_EQ(Distinct(Filled(Sample::kPositive, DType::kFloat32)),
            (std::set<std::string>{"1.000000", "2.000000"}));
  EXPECT_GT(Distinct(Filled(Sample::kRandom, DType::kFloat32, /*whole=*/false)).size(), 10'000u);
  EXPECT_EQ(Distinct(Filled(Sample::kRandom, DType::kInt32)).size(), 10u);
}

TEST(SampleInputs, InfinitiesAreRare) {
  int infinite = 0;
  for (const double value : Filled(Sample::kInfinities, DType::kBFloat16)) {
    EXPECT_FALSE(std::isnan(value));
    infinite += std::isinf(value);
  }
  EXPECT_GT(infinite, 0);
  EXPECT_LT(infinite, kElements / 1000);
}

TEST(SampleInputs, OddOnesHaveZerosSubnormalNumbersAndNaN) {
  int zeros = 0, negative_zeros = 0, subnormal = 0, nan = 0;
  for (const double value : Filled(Sample::kOdd, DType::kFloat32)) {
    zeros += value == 0 && !std::signbit(value);
    negative_zeros += value == 0 && std::signbit(value);
    subnormal += value != 0 && std::fpclassify(static_cast<float>(value)) == FP_SUBNORMAL;
    nan += std::isnan(value);
  }
  EXPECT_GT(zeros, kElements / 100);
  EXPECT_GT(negative_zeros, kElements / 100);
  EXPECT_GT(subnormal, 0);
  EXPECT_GT(nan, 0);
  EXPECT_LT(nan, kElements / 1000);
}

TEST(SampleInputs, EqualOnesAreEqual) {
  for (const DType dtype : {DType::kFloat32, DType::kInt8, DType::kBool}) {
    EXPECT_EQ(Distinct(Filled(Sample::kEqual, dtype)).size(), 1u);
  }
}

TEST(SampleInputs, PerturbationsAreSmall) {
  std::vector<float> values(kElements, 2);
  values[7] = std::numeric_limits<float>::infinity();
  Perturb(DType::kFloat32, kElements, /*relative=*/0.01, /*seed=*/1, values.data());
  EXPECT_TRUE(std::isinf(values[7]));
  values[7] = 2;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  EXPECT_NEAR(*least, 1.98, 0.001);
  EXPECT_NEAR(*most, 2.02, 0.001);
  std::vector<int> integers(kElements, 2);
  Perturb(DType::kInt32, kElements, 0.9, 1, integers.data());
  EXPECT_EQ(integers, std::vector<int>(kElements, 2));
}

bool HasExactSumsIn(const std::string& stages) {
  ir::Context context;
  const auto kernel = ParseKernel(
      "buffer b0 float32[4096] read\n"
      "buffer b1 float32[64] write\n" +
          stages,
      context);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return HasExactSums(*kernel);
}

TEST(SampleInputs, SumsOfProductsOfInputsAreExact) {
  EXPECT_TRUE(
      HasExactSumsIn("stage r0:64 reduce r1:64\n"
                     "  b1[r0] = exp2(sum(b0[r0*64 + r1]*b0[r1]))\n"));
  EXPECT_FALSE(
      HasExactSumsIn("stage r0:64 reduce r1:64\n"
                     "  b1[r0] = sum(exp2(b0[r0*64 + r1]))\n"));
  EXPECT_FALSE(
      HasExactSumsIn("stage r0:64 reduce r1:64\n"
                     "  b1[r0] = sum(b0[r0*64 + r1]*0.1:float32)\n"));
}

TEST(SampleInputs, CountsPointsOfAllStages) {
  ir::Context context;
  const auto kernel = ParseKernel(
      "buffer b0 float32[4096] read\nbuffer b1 float32[64] write\nbuffer b2 float32[1] local\n"
      "grid r0:64\nstage reduce r1:64\n  b2[0] = sum(b0[r0*64 + r1])\nstage\n  b1[r0] = b2[0]\n",
      context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(CountPoints(*kernel), 64 * 64 + 64);
  EXPECT_TRUE(HasExactSums(*kernel));
}

}  // namespace
}  // namespace kiln::kernel
