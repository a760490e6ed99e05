#include "server/tuner/turns.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "proto/check/check.h"

namespace kiln::tuner {
namespace {

// The standard deviation of a normal distribution in median absolute deviations, and the standard
// error of a median in standard deviations of a value, for many values.
constexpr double kDeviations = 1.4826;
constexpr double kErrorOfMedian = 1.2533;

}  // namespace

double Median(std::vector<double> values) {
  KILN_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

Ratio CompareTurns(absl::Span<const double> incumbent, absl::Span<const double> candidate) {
  KILN_CHECK_EQ(incumbent.size(), candidate.size());
  for (const double seconds : incumbent) KILN_CHECK_GT(seconds, 0);
  for (const double seconds : candidate) KILN_CHECK_GT(seconds, 0);
  std::vector<double> ratios;
  for (size_t i = 0; i < incumbent.size(); ++i) ratios.push_back(candidate[i] / incumbent[i]);
  const double median = Median(ratios);
  const double of_minima = *std::min_element(candidate.begin(), candidate.end()) /
                           *std::min_element(incumbent.begin(), incumbent.end());
  std::vector<double> deviations;
  for (const double ratio : ratios) deviations.push_back(std::abs(ratio - median));
  const double error = kErrorOfMedian * kDeviations * Median(std::move(deviations)) /
                       std::sqrt(static_cast<double>(ratios.size()));
  const double value = std::max(median, of_minima);
  return {value, std::max(2 * error, std::abs(median - of_minima) / 2) / value};
}

}  // namespace kiln::tuner
