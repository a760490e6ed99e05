#include "compiler/search/model/cost_model.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "compiler/search/model/features.h"
#include "compiler/search/space.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::search {
namespace {

// A schedule with these two features, and zero for the others.
Features FeaturesWith(double first, double second) {
  Features features(FeatureNames().size(), 0);
  features[0] = first;
  features[1] = second;
  return features;
}

// The time depends on both, and on how they compare to the heuristic's.
double TimeOf(double first, double second) {
  return std::exp(first - 0.5 * second + (first > 1 ? 1 : 0));
}

std::vector<CostSample> Samples(int count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> values(0, 2);
  std::vector<CostSample> samples;
  for (int i = 0; i < count; ++i) {
    const double a = values(random), b = values(random), c = values(random), d = values(random);
    samples.push_back(
        {FeaturesWith(a, b), FeaturesWith(c, d), std::log(TimeOf(c, d) / TimeOf(a, b))});
  }
  return samples;
}

TEST(CostModelTest, OrdersWhatItHasNotSeen) {
  const CostModel model = CostModel::Fit(Samples(2000, 1));
  std::vector<double> predictions, times;
  for (const CostSample& sample : Samples(200, 2)) {
    predictions.push_back(model.Predict(sample.heuristic, sample.features));
    times.push_back(std::exp(sample.log_ratio));
  }
  EXPECT_GT(RankCorrelation(predictions, times), 0.95);
  EXPECT_LT(Regret(predictions, times, 10), 0.1);
}

TEST(CostModelTest, TheSameSamplesGiveTheSameModel) {
  const std::vector<CostSample> samples = Samples(300, 1);
  const CostModel one = CostModel::Fit(samples), other = CostModel::Fit(samples);
  for (const CostSample& sample : Samples(20, 2)) {
    EXPECT_EQ(one.Predict(sample.heuristic, sample.features),
              other.Predict(sample.heuristic, sample.features));
  }
}

TEST(CostModelTest, FewSamplesGiveTheirMean) {
  EXPECT_TRUE(CostModel().empty());
  EXPECT_EQ(CostModel().Predict(FeaturesWith(1, 2), FeaturesWith(3, 4)), 0);
  EXPECT_TRUE(CostModel::Fit({}).empty());
  const std::vector<CostSample> samples = {{FeaturesWith(0, 0), FeaturesWith(1, 0), 1},
                                           {FeaturesWith(0, 0), FeaturesWith(2, 0), 3}};
  EXPECT_NEAR(CostModel::Fit(samples).Predict(FeaturesWith(0, 0), FeaturesWith(9, 9)), 2, 1e-9);
}

TEST(CostModelTest, RankCorrelationComparesOrders) {
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 2, 3}, {10, 20, 90}), 1);
  EXPECT_DOUBLE_EQ(RankCorrelation({3, 2, 1}, {10, 20, 90}), -1);
  EXPECT_DOUBLE_EQ(RankCorrelation({1, 1, 1}, {10, 20, 90}), 0);
  EXPECT_NEAR(RankCorrelation({1, 1, 2}, {10, 20, 90}), std::sqrt(3) / 2, 1e-9);
  EXPECT_EQ(RankCorrelation({}, {}), 0);
}

TEST(CostModelTest, RegretIsTheLossOfTheBestOfTheFirst) {
  EXPECT_DOUBLE_EQ(Regret({1, 2, 3}, {3, 2, 1}, 1), 2);
  EXPECT_DOUBLE_EQ(Regret({1, 2, 3}, {3, 2, 1}, 2), 1);
  EXPECT_DOUBLE_EQ(Regret({1, 2, 3}, {3, 2, 1}, 9), 0);
}

constexpr char kProduct[] = R"(buffer b0 float32[16384] read
buffer b1 float32[16384] read
buffer b2 float32[16384] write
stage r0:128 r1:128 reduce r2:128
  b2[r0*128 + r1] = sum(b0[r0*128 + r2]*b1[r2*128 + r1])
)";

double FeatureOf(const Features& features, std::string_view name) {
  const auto at = std::find(FeatureNames().begin(), FeatureNames().end(), name);
  EXPECT_NE(at, FeatureNames().end());
  return std::exp(features[static_cast<size_t>(at - FeatureNames().begin())]);
}

TEST(FeaturesTest, CountWhatALoopDoes) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kProduct, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  drivers::Target target;
  target.architecture = "x86-64";
  target.limits.vector_bytes = 32;
  target.capabilities.fma = true;
  const auto plain = FeaturesOf(*kernel, {}, target);
  ASSERT_TRUE(plain.ok()) << plain.status();
  EXPECT_EQ(plain->size(), FeatureNames().size());
  EXPECT_NEAR(FeatureOf(*plain, "tasks"), 1, 0.01);
  EXPECT_NEAR(FeatureOf(*plain, "vector operations"), 0, 0.01);
  // A product and a sum for each term.
  EXPECT_NEAR(FeatureOf(*plain, "scalar operations"), 2 * 128 * 128 * 128, 128 * 128 * 4);
  const Space space(*kernel, target, Machine::kLanes);
  const auto schedule = space.Write(space.heuristic());
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  const auto tiled = FeaturesOf(*kernel, *schedule, target);
  ASSERT_TRUE(tiled.ok()) << tiled.status();
  // Lanes of eight.
  EXPECT_NEAR(FeatureOf(*tiled, "fused operations"), 128 * 128 * 128 / 8, 128 * 128);
  EXPECT_LT(FeatureOf(*tiled, "near traffic"), FeatureOf(*plain, "near traffic"));
  for (const double feature : *tiled) EXPECT_TRUE(std::isfinite(feature));
}

TEST(FeaturesTest, AnIllegalScheduleHasNone) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kProduct, context);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  const auto schedule = schedule::Parse("split 99 8\n");
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_FALSE(FeaturesOf(*kernel, *schedule, {}).ok());
}

}  // namespace
}  // namespace kiln::search
