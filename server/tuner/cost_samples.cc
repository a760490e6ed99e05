#include "server/tuner/cost_samples.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "proto/check/check.h"
#include "proto/coding/coding.h"

namespace kiln::tuner {
namespace {

constexpr int64_t kSamplesTableVersion = 1;
constexpr uint64_t kSamplesVersion = 1;

// Halves the size, and a model does not see the difference.
void PutShort(ByteWriter& out, double value) {
  out.Fixed32(std::bit_cast<uint32_t>(static_cast<float>(value)));
}
double TakeShort(ByteReader& in) {
  const double value = std::bit_cast<float>(in.Fixed32());
  if (!std::isfinite(value)) in.Fail();
  return value;
}

void PutFeatures(ByteWriter& out, const search::Features& features) {
  KILN_CHECK_EQ(features.size(), search::FeatureNames().size());
  for (const double feature : features) PutShort(out, feature);
}
search::Features TakeFeatures(ByteReader& in) {
  search::Features features(search::FeatureNames().size());
  for (double& feature : features) feature = TakeShort(in);
  return features;
}

}  // namespace

std::string EncodeSamples(const KernelSamples& samples) {
  ByteWriter out;
  out.Number(kSamplesVersion);
  out.Number(search::kFeaturesVersion);
  out.Number(search::FeatureNames().size());
  out.Text(samples.hardware);
  PutFeatures(out, samples.heuristic);
  const size_t count = std::min(samples.schedules.size(), CostSamples::kSchedulesMax);
  out.Number(count);
  for (size_t i = 0; i < count; ++i) {
    PutFeatures(out, samples.schedules[i].first);
    PutShort(out, samples.schedules[i].second);
  }
  return out.Take();
}

std::optional<KernelSamples> DecodeSamples(std::string_view bytes) {
  ByteReader in(bytes);
  if (in.Number() != kSamplesVersion || in.Number() != search::kFeaturesVersion ||
      in.Number() != search::FeatureNames().size())
    return std::nullopt;
  KernelSamples samples;
  samples.hardware = in.Text();
  samples.heuristic = TakeFeatures(in);
  samples.schedules.resize(in.Below(CostSamples::kSchedulesMax + 1));
  for (auto& [features, log_ratio] : samples.schedules) {
    features = TakeFeatures(in);
    log_ratio = TakeShort(in);
  }
  return in.AtEnd() ? std::make_optional(std::move(samples)) : std::nullopt;
}

CostSamples::CostSamples(Options options)
    : table_({.folder = std::move(options.folder),
              .name = "samples",
              .title = "sample store",
              .noun = "kernel's samples",
              .loss = "searches try candidates in another order",
              .version = kSamplesTableVersion,
              .bytes_max = options.bytes_max,
              .rows_max = options.kernels_max,
              .now = std::move(options.now)}) {}

absl::Status CostSamples::Add(const std::string& kernel, const KernelSamples& samples) {
  ByteWriter key;
  key.Text(samples.hardware);
  key.Bytes(kernel);
  absl::Status put = table_.Put(key.Take(), EncodeSamples(samples));
  absl::MutexLock lock(&mutex_);
  models_.erase(samples.hardware);
  return put;
}

std::shared_ptr<const search::CostModel> CostSamples::ModelOf(const std::string& hardware) {
  absl::MutexLock lock(&mutex_);
  const auto known = models_.find(hardware);
  if (known != models_.end()) return known->second;
  std::vector<search::CostSample> samples;
  int kernels = 0;
  const absl::Status read = table_.ForEach([&](std::string_view bytes) {
    if (samples.size() >= kFittedMax) return;
    const std::optional<KernelSamples> kernel = DecodeSamples(bytes);
    if (!kernel || kernel->hardware != hardware) return;
    ++kernels;
    for (const auto& [features, log_ratio] : kernel->schedules)
      samples.push_back({kernel->heuristic, features, log_ratio});
  });
  std::shared_ptr<const search::CostModel> model;
  if (read.ok() && kernels >= kKernelsMin)
    model = std::make_shared<const search::CostModel>(search::CostModel::Fit(samples));
  models_[hardware] = model;
  return model;
}

}  // namespace kiln::tuner
