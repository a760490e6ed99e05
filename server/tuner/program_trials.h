// Compares two programs of one graph on a device, by the kernels in which they differ.
#ifndef KILN_SERVER_TUNER_PROGRAM_TRIALS_H_
#define KILN_SERVER_TUNER_PROGRAM_TRIALS_H_

#include "absl/status/statusor.h"
#include "compiler/compiler.h"
#include "server/tuner/choice_search.h"
#include "server/tuner/compare_trials.h"
#include "server/tuner/measure_rates.h"

namespace kiln::tuner {

// Times the kernels of `before` that `after` has not, all together, in turns with those of `after`
// that `before` has not. If they seem to be faster by more than noise and at least `gain_min`,
// compares the results on inputs of all kinds, and times them once more. They find the caches as
// their turns leave them, not as the kernels before them in the program do. Errors: those of
// DifferenceOf, of the runner and its trials; DATA_LOSS if results differ.
absl::StatusOr<Comparison> CompareOnDevice(const compiler::CompiledProgram& before,
                                           const compiler::CompiledProgram& after,
                                           WithRunner with_runner, const TrialOptions& options,
                                           double gain_min = 0.01);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_PROGRAM_TRIALS_H_
