#include "server/tuner/kernel_trials.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/parallel_for.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/tuner/compare_results.h"
#include "server/tuner/turns.h"

namespace kiln::tuner {
namespace {

using search::Candidate;
using search::Measured;
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

}  // namespace

KernelTrials::KernelTrials(const kernel::Kernel& kernel, const drivers::Target& target,
                           workers::CompileFunction compile, TrialRunner& runner,
                           TrialOptions options)
    : kernel_(kernel),
      target_(target),
      text_(kernel::Print(kernel)),
      compile_(std::move(compile)),
      runner_(runner),
      options_(options),
      tolerance_(ToleranceOf(kernel)) {}

absl::StatusOr<drivers::KernelImage> KernelTrials::Compile(
    const schedule::Schedule& schedule) const {
  return compile_({.name = kernel_.name,
                   .kernel = text_,
                   .schedule = schedule::Print(schedule),
                   .target = target_});
}

absl::StatusOr<std::unique_ptr<Trial>> KernelTrials::CompileAndLoad(
    const schedule::Schedule& schedule) {
  const auto image = Compile(schedule);
  if (!image.ok()) return image.status();
  return runner_.Load(*image);
}

std::vector<absl::StatusOr<Timing>> KernelTrials::Measure(const Measured* incumbent,
                                                          absl::Span<const Candidate> candidates) {
  std::vector<absl::StatusOr<drivers::KernelImage>> images(candidates.size(),
                                                           absl::UnknownError("not compiled"));
  compiler::ParallelFor(candidates.size(), options_.compile_threads,
                        [&](size_t i) { images[i] = Compile(candidates[i].schedule); });
  std::vector<absl::StatusOr<Timing>> timings;
  for (const auto& image : images) {
    timings.push_back(image.ok() ? MeasureImage(incumbent, *image)
                                 : absl::StatusOr<Timing>(image.status()));
  }
  return timings;
}

absl::StatusOr<Timing> KernelTrials::MeasureImage(const Measured* incumbent,
                                                  const drivers::KernelImage& image) {
  const std::string digest = Sha256Hex(image.Serialize());
  if (const auto known = timings_.find(digest); known != timings_.end()) {
    ++repeated_;
    return known->second;
  }
  absl::StatusOr<Timing> timing =
      incumbent == nullptr ? MeasureFirst(image) : MeasureNew(*incumbent, image);
  // A process that could not be started says nothing about a candidate.
  if (!absl::IsUnavailable(timing.status())) timings_.emplace(digest, timing);
  return timing;
}

absl::StatusOr<Timing> KernelTrials::MeasureFirst(const drivers::KernelImage& image) {
  auto trial = runner_.Load(image);
  if (!trial.ok()) return trial.status();
  heuristic_ = *std::move(trial);
  std::vector<double> seconds;
  for (int round = 0; round <= options_.rounds; ++round) {
    const int times = seconds.empty() ? 1 : RepetitionsOf(Least(seconds));
    const double seconds_max =
        seconds.empty() ? options_.run_seconds_max : SecondsMax(Least(seconds) * times);
    const auto time = TimeOf(*heuristic_, times, seconds_max);
    if (!time.ok()) return time.status();
    seconds.push_back(*time);
  }
  seconds.erase(seconds.begin());  // it warmed up
  if (absl::Status status = CompareWithPlain(); !status.ok()) return status;
  return Timing{.seconds = Median(seconds)};
}

int KernelTrials::RepetitionsOf(double seconds) const {
  const double times = std::ceil(options_.turn_seconds / std::max(seconds, 1e-9));
  return static_cast<int>(std::clamp(times, 1.0, static_cast<double>(kRepetitionsMax)));
}

double KernelTrials::SecondsMax(double expected) const {
  return kPatience * expected + options_.patience_seconds;
}

absl::StatusOr<Timing> KernelTrials::MeasureNew(const Measured& incumbent,
                                                const drivers::KernelImage& image) {
  if (absl::Status status = LoadIncumbent(incumbent); !status.ok()) return status;
  auto trial = runner_.Load(image);
  if (!trial.ok()) return trial.status();
  // The first run brings code and data into the caches.
  std::vector<double> seconds;
  for (int run = 0; run < 2; ++run) {
    const auto time = TimeOf(**trial, 1, SecondsMax(incumbent.timing.seconds));
    if (!time.ok()) return time.status();
    seconds.push_back(*time);
    if (*time <= kHopelessSlowdown * incumbent.timing.seconds) break;
  }
  const double least = Least(seconds);
  // All of it may be noise: this is never a gain.
  if (least > kHopelessSlowdown * incumbent.timing.seconds) return Timing{least, 1};
  return TakeTurns(incumbent, **trial, options_.rounds);
}

absl::Status KernelTrials::LoadIncumbent(const Measured& incumbent) {
  std::string schedule = schedule::Print(incumbent.candidate.schedule);
  if (incumbent_ != nullptr && schedule == incumbent_schedule_) return absl::OkStatus();
  auto trial = CompileAndLoad(incumbent.candidate.schedule);
  if (!trial.ok()) return trial.status();
  incumbent_ = *std::move(trial);
  incumbent_schedule_ = std::move(schedule);
  return absl::OkStatus();
}

absl::StatusOr<Timing> KernelTrials::TakeTurns(const Measured& incumbent, Trial& candidate,
                                               int rounds) {
  const double expected = incumbent.timing.seconds;
  const int times = RepetitionsOf(expected);
  std::vector<double> incumbents, candidates;
  auto take_turn = [&](Trial& trial, std::vector<double>* seconds) {
    const auto time = TimeOf(trial, times, SecondsMax(expected * times));
    if (time.ok()) seconds->push_back(*time);
    return time.status();
  };
  for (int round = 0; round < rounds; ++round) {
    // The order changes: a turn may find caches and clocks as the one before left them.
    const bool incumbent_first = round % 2 == 0;
    absl::Status status =
        incumbent_first ? take_turn(*incumbent_, &incumbents) : take_turn(candidate, &candidates);
    if (!status.ok()) return status;
    status =
        incumbent_first ? take_turn(candidate, &candidates) : take_turn(*incumbent_, &incumbents);
    if (!status.ok()) return status;
    if (candidates.size() >= kRoundsMin &&
        Least(candidates) > options_.slowdown_max * Least(incumbents)) {
      break;
    }
  }
  const Ratio ratio = CompareTurns(incumbents, candidates);
  return Timing{.seconds = expected * ratio.value, .noise = ratio.noise};
}

absl::StatusOr<Timing> KernelTrials::Confirm(const Measured& incumbent,
                                             const Candidate& candidate) {
  if (absl::Status status = LoadIncumbent(incumbent); !status.ok()) return status;
  auto trial = CompileAndLoad(candidate.schedule);
  if (!trial.ok()) return trial.status();
  KILN_CHECK(heuristic_ != nullptr) << "Measure was not called";
  if (absl::Status status = Compare(*heuristic_, **trial); !status.ok()) return status;
  // Warms up, since the comparison had other inputs.
  const auto warm = TimeOf(**trial, 1, SecondsMax(incumbent.timing.seconds));
  if (!warm.ok()) return warm.status();
  return TakeTurns(incumbent, **trial, options_.confirming_rounds);
}

absl::Status KernelTrials::CompareWithPlain() {
  if (kernel::CountPoints(kernel_) > options_.plain_points_max) return absl::OkStatus();
  auto plain = CompileAndLoad({});
  if (!plain.ok()) return plain.status();
  const absl::Status status = Compare(**plain, *heuristic_);
  if (!absl::IsDataLoss(status)) return status;
  return absl::InternalError(absl::StrCat("the heuristic's schedule is wrong: ", status.message()));
}

// Compares again, with the differences that perturbed inputs make.
absl::Status KernelTrials::CompareWithSpread(Trial& right, kernel::Sample sample,
                                             const Outputs& want, const Outputs& got) {
  Spread spread;
  for (uint64_t seed = 1; seed <= kPerturbations; ++seed) {
    const auto perturbed = right.Run({sample, tolerance_, seed}, options_.run_seconds_max);
    if (!perturbed.ok()) return perturbed.status();
    AddSpread(kernel_, want, *perturbed, &spread);
  }
  return CompareResults(kernel_, want, got, tolerance_, spread);
}

// Returns DATA_LOSS if the candidate's results are not those of `right`.
absl::Status KernelTrials::Compare(Trial& right, Trial& candidate) {
  for (const kernel::Sample sample : kernel::Samples()) {
    const auto want = right.Run({sample}, options_.run_seconds_max);
    if (!want.ok()) return WithSample(want.status(), sample);
    const auto got = candidate.Run({sample}, options_.run_seconds_max);
    if (!got.ok()) return WithSample(got.status(), sample);
    absl::Status status = CompareResults(kernel_, *want, *got, tolerance_);
    if (!status.ok()) status = CompareWithSpread(right, sample, *want, *got);
    if (!status.ok()) return WithSample(status, sample);
  }
  return absl::OkStatus();
}

}  // namespace kiln::tuner
