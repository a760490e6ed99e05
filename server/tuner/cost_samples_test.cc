#include "server/tuner/cost_samples.h"

#include <cmath>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

search::Features FeaturesOf(double value) {
  return search::Features(search::FeatureNames().size(), value);
}

// Twice the features take twice the time.
KernelSamples SamplesOf(const std::string& hardware) {
  KernelSamples samples{.hardware = hardware, .heuristic = FeaturesOf(0), .schedules = {}};
  for (int i = -10; i <= 10; ++i) samples.schedules.emplace_back(FeaturesOf(i), i);
  return samples;
}

class CostSamplesTest : public ::testing::Test {
 protected:
  CostSamplesTest() {
    std::string pattern = absl::StrCat(::testing::TempDir(), "/kiln_samples_XXXXXX");
    folder_ = mkdtemp(pattern.data());
  }
  ~CostSamplesTest() override { std::filesystem::remove_all(folder_); }
  CostSamples Open() {
    return CostSamples({.folder = folder_, .now = [] { return absl::UnixEpoch(); }});
  }

  std::string folder_;
};

TEST_F(CostSamplesTest, AModelNeedsSeveralKernelsOfTheSameHardware) {
  CostSamples samples = Open();
  for (int i = 0; i < CostSamples::kKernelsMin; ++i) {
    EXPECT_EQ(samples.ModelOf("fast"), nullptr);
    ASSERT_TRUE(samples.Add(absl::StrCat("kernel ", i), SamplesOf("fast")).ok());
    ASSERT_TRUE(samples.Add(absl::StrCat("kernel ", i), SamplesOf("fast")).ok());
  }
  const auto model = samples.ModelOf("fast");
  ASSERT_NE(model, nullptr);
  EXPECT_LT(model->Predict(FeaturesOf(0), FeaturesOf(-5)),
            model->Predict(FeaturesOf(0), FeaturesOf(5)));
  EXPECT_EQ(samples.ModelOf("fast"), model);
  EXPECT_EQ(samples.ModelOf("other"), nullptr);
}

TEST_F(CostSamplesTest, ARestartHasThemStill) {
  for (int i = 0; i < CostSamples::kKernelsMin; ++i)
    ASSERT_TRUE(Open().Add(absl::StrCat("kernel ", i), SamplesOf("fast")).ok());
  EXPECT_NE(Open().ModelOf("fast"), nullptr);
}

TEST_F(CostSamplesTest, SamplesSurviveEncoding) {
  KernelSamples samples = SamplesOf("fast");
  const std::string bytes = EncodeSamples(samples);
  EXPECT_EQ(DecodeSamples(bytes), samples);
  for (size_t size = 0; size < bytes.size(); size += 7)
    EXPECT_FALSE(DecodeSamples(bytes.substr(0, size))) << size;
  EXPECT_FALSE(DecodeSamples(bytes + "x"));
  samples.schedules[0].second = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(DecodeSamples(EncodeSamples(samples)));
  samples = SamplesOf("fast");
  samples.schedules.resize(CostSamples::kSchedulesMax + 5, samples.schedules[0]);
  EXPECT_EQ(DecodeSamples(EncodeSamples(samples))->schedules.size(), CostSamples::kSchedulesMax);
}

}  // namespace
}  // namespace kiln::tuner
