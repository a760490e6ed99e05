#include "server/tuner/kernel_trials.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/parallel_for.h"
#include "proto/check/check.h"
#include "proto/digest/sha256.h"
#include "server/tuner/compare_results.h"

namespace kiln::tuner {
namespace {

using search::Candidate;
using search::Measured;
using search::Timing;

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
  const auto seconds = TimeAlone(*heuristic_, options_);
  if (!seconds.ok()) return seconds.status();
  if (absl::Status status = CompareWithPlain(); !status.ok()) return status;
  return Timing{.seconds = *seconds};
}

absl::StatusOr<Timing> KernelTrials::MeasureNew(const Measured& incumbent,
                                                const drivers::KernelImage& image) {
  if (absl::Status status = LoadIncumbent(incumbent); !status.ok()) return status;
  auto trial = runner_.Load(image);
  if (!trial.ok()) return trial.status();
  return TimeNew(*incumbent_, **trial, incumbent.timing.seconds, options_);
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

absl::StatusOr<Timing> KernelTrials::Confirm(const Measured& incumbent,
                                             const Candidate& candidate) {
  if (absl::Status status = LoadIncumbent(incumbent); !status.ok()) return status;
  auto trial = CompileAndLoad(candidate.schedule);
  if (!trial.ok()) return trial.status();
  KILN_CHECK(heuristic_ != nullptr) << "Measure was not called";
  absl::Status status = CompareTrials(kernel_, *heuristic_, **trial, tolerance_, options_);
  if (!status.ok()) return status;
  return TimeAgain(*incumbent_, **trial, incumbent.timing.seconds, options_);
}

absl::Status KernelTrials::CompareWithPlain() {
  if (kernel::CountPoints(kernel_) > options_.plain_points_max) return absl::OkStatus();
  auto plain = CompileAndLoad({});
  if (!plain.ok()) return plain.status();
  const absl::Status status = CompareTrials(kernel_, **plain, *heuristic_, tolerance_, options_);
  if (!absl::IsDataLoss(status)) return status;
  return absl::InternalError(absl::StrCat("the heuristic's schedule is wrong: ", status.message()));
}

}  // namespace kiln::tuner
