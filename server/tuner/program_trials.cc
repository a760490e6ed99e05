#include "server/tuner/program_trials.h"

#include <memory>

#include "compiler/search/beam.h"
#include "server/tuner/program_difference.h"

namespace kiln::tuner {
namespace {

absl::Status CompareIn(TrialRunner& runner, const ProgramDifference& difference,
                       const TrialOptions& options, double gain_min, Comparison* comparison) {
  const auto before = runner.LoadSteps(difference.before);
  if (!before.ok()) return before.status();
  const auto after = runner.LoadSteps(difference.after);
  if (!after.ok()) return after.status();
  const auto expected = TimeAlone(**before, options);
  if (!expected.ok()) return expected.status();
  auto timing = TimeNew(**before, **after, *expected, options);
  if (!timing.ok()) return timing.status();
  if (search::IsGain(*timing, *expected, gain_min)) {
    absl::Status same =
        CompareTrials(difference.compared, **before, **after, difference.tolerance, options);
    if (!same.ok()) return same;
    timing = TimeAgain(**before, **after, *expected, options);
    if (!timing.ok()) return timing.status();
    comparison->is_gain = search::IsGain(*timing, *expected, gain_min);
  }
  comparison->seconds_before = *expected;
  comparison->seconds_after = timing->seconds;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Comparison> CompareOnDevice(const compiler::CompiledProgram& before,
                                           const compiler::CompiledProgram& after,
                                           WithRunner with_runner, const TrialOptions& options,
                                           double gain_min) {
  ir::Context context;
  const auto difference = DifferenceOf(before, after, context);
  if (!difference.ok()) return difference.status();
  Comparison comparison;
  if (difference->before.empty() || difference->after.empty()) return comparison;
  const absl::Status compared = with_runner(difference->kernel, [&](TrialRunner& runner) {
    return CompareIn(runner, *difference, options, gain_min, &comparison);
  });
  if (!compared.ok()) return compared;
  return comparison;
}

}  // namespace kiln::tuner
