#include "server/tuner/compare_trials.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/tuner/compare_results.h"
#include "server/tuner/turns.h"

namespace kiln::tuner {
namespace {

using search::Timing;

// A candidate may take this many times as long as it should before it is stopped.
constexpr double kPatience = 10;
// A candidate that is slower than the incumbent by this factor in its first runs is not timed in
// turns.
constexpr double kHopelessSlowdown = 3;
constexpr int kRepetitionsMax = 1000;
// Runs on perturbed inputs, if results differ by more than the tolerance.
constexpr uint64_t kPerturbations = 3;
// Turns before a candidate can be given up.
constexpr size_t kRoundsMin = 2;

// UNAVAILABLE if the device has no clock: without times nothing can be compared.
absl::StatusOr<double> TimeOf(Trial& trial, int times, double seconds_max) {
  const absl::StatusOr<double> seconds = trial.Time(times, seconds_max);
  if (!seconds.ok() || *seconds > 0) return seconds;
  return absl::UnavailableError("the device has measured no time");
}

double Least(const std::vector<double>& seconds) {
  return *std::min_element(seconds.begin(), seconds.end());
}

absl::Status WithSample(const absl::Status& status, kernel::Sample sample) {
  const std::string_view name = kernel::NameOf(sample);
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), ", on ", std::string(name), " inputs"));
}

int RepetitionsOf(double seconds, const TrialOptions& options) {
  const double times = std::ceil(options.turn_seconds / std::max(seconds, 1e-9));
  return static_cast<int>(std::clamp(times, 1.0, static_cast<double>(kRepetitionsMax)));
}

double SecondsMax(double expected, const TrialOptions& options) {
  return kPatience * expected + options.patience_seconds;
}

// Drops what the kernel does not name as an output.
Outputs OutputsOf(const kernel::Kernel& kernel, Outputs outputs) {
  std::erase_if(outputs, [&kernel](const auto& output) {
    return kernel.buffers[static_cast<size_t>(output.first)].access == kernel::Access::kRead;
  });
  return outputs;
}

absl::StatusOr<Timing> TakeTurns(Trial& incumbent, Trial& candidate, double expected, int rounds,
                                 const TrialOptions& options) {
  const int times = RepetitionsOf(expected, options);
  std::vector<double> incumbents, candidates;
  auto take_turn = [&](Trial& trial, std::vector<double>* seconds) {
    const auto time = TimeOf(trial, times, SecondsMax(expected * times, options));
    if (time.ok()) seconds->push_back(*time);
    return time.status();
  };
  for (int round = 0; round < rounds; ++round) {
    // The order changes: a turn may find caches and clocks as the one before left them.
    const bool incumbent_first = round % 2 == 0;
    absl::Status status =
        incumbent_first ? take_turn(incumbent, &incumbents) : take_turn(candidate, &candidates);
    if (!status.ok()) return status;
    status =
        incumbent_first ? take_turn(candidate, &candidates) : take_turn(incumbent, &incumbents);
    if (!status.ok()) return status;
    if (candidates.size() >= kRoundsMin &&
        Least(candidates) > options.slowdown_max * Least(incumbents)) {
      break;
    }
  }
  const Ratio ratio = CompareTurns(incumbents, candidates);
  return Timing{.seconds = expected * ratio.value, .noise = ratio.noise};
}

// Compares again, with the differences that perturbed inputs make.
absl::Status CompareWithSpread(const kernel::Kernel& kernel, Trial& right, kernel::Sample sample,
                               const Outputs& want, const Outputs& got, double tolerance,
                               const TrialOptions& options) {
  Spread spread;
  for (uint64_t seed = 1; seed <= kPerturbations; ++seed) {
    const auto perturbed = right.Run({sample, tolerance, seed}, options.run_seconds_max);
    if (!perturbed.ok()) return perturbed.status();
    AddSpread(kernel, want, *perturbed, &spread);
  }
  return CompareResults(kernel, want, got, tolerance, spread);
}

}  // namespace

absl::StatusOr<double> TimeAlone(Trial& trial, const TrialOptions& options) {
  std::vector<double> seconds;
  for (int round = 0; round <= options.rounds; ++round) {
    const int times = seconds.empty() ? 1 : RepetitionsOf(Least(seconds), options);
    const double seconds_max =
        seconds.empty() ? options.run_seconds_max : SecondsMax(Least(seconds) * times, options);
    const auto time = TimeOf(trial, times, seconds_max);
    if (!time.ok()) return time.status();
    seconds.push_back(*time);
  }
  seconds.erase(seconds.begin());  // it warmed up
  return Median(seconds);
}

absl::StatusOr<Timing> TimeNew(Trial& incumbent, Trial& candidate, double expected,
                               const TrialOptions& options) {
  // The first run brings code and data into the caches.
  std::vector<double> seconds;
  for (int run = 0; run < 2; ++run) {
    const auto time = TimeOf(candidate, 1, SecondsMax(expected, options));
    if (!time.ok()) return time.status();
    seconds.push_back(*time);
    if (*time <= kHopelessSlowdown * expected) break;
  }
  const double least = Least(seconds);
  // All of it may be noise: this is never a gain.
  if (least > kHopelessSlowdown * expected) return Timing{least, 1};
  return TakeTurns(incumbent, candidate, expected, options.rounds, options);
}

absl::StatusOr<Timing> TimeAgain(Trial& incumbent, Trial& candidate, double expected,
                                 const TrialOptions& options) {
  // Warms up, since the comparison had other inputs.
  const auto warm = TimeOf(candidate, 1, SecondsMax(expected, options));
  if (!warm.ok()) return warm.status();
  return TakeTurns(incumbent, candidate, expected, options.confirming_rounds, options);
}

absl::Status CompareTrials(const kernel::Kernel& kernel, Trial& right, Trial& candidate,
                           double tolerance, const TrialOptions& options) {
  for (const kernel::Sample sample : kernel::Samples()) {
    auto want = right.Run({sample}, options.run_seconds_max);
    if (!want.ok()) return WithSample(want.status(), sample);
    auto got = candidate.Run({sample}, options.run_seconds_max);
    if (!got.ok()) return WithSample(got.status(), sample);
    want = OutputsOf(kernel, *std::move(want));
    got = OutputsOf(kernel, *std::move(got));
    absl::Status status = CompareResults(kernel, *want, *got, tolerance);
    if (!status.ok())
      status = CompareWithSpread(kernel, right, sample, *want, *got, tolerance, options);
    if (!status.ok()) return WithSample(status, sample);
  }
  return absl::OkStatus();
}

}  // namespace kiln::tuner
