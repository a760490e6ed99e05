// Times two trials of one runner in turns, and compares their results.
#ifndef KILN_SERVER_TUNER_COMPARE_TRIALS_H_
#define KILN_SERVER_TUNER_COMPARE_TRIALS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/search/beam.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

struct TrialOptions {
  int compile_threads = 1;
  // Turns of a candidate and the incumbent: to order candidates, and to confirm one.
  int rounds = 5;
  int confirming_rounds = 15;
  // A turn repeats the kernel until it takes about this long, and counts the fastest run.
  double turn_seconds = 5e-3;
  // Once a candidate is slower than the incumbent by this factor it is not timed any further.
  double slowdown_max = 1.25;
  // Bound for one run of the heuristic's schedule, and for one whose results are compared. Turns of
  // candidates have a multiple of the incumbent's time, and this much more.
  double run_seconds_max = 10;
  double patience_seconds = 0.5;
  // If the kernel's loops have at most this many points, the heuristic's schedule is compared with
  // the plain one. Candidates are always compared with the heuristic's.
  int64_t plain_points_max = 50'000'000;
};

// Returns the seconds of a run: the median of turns, after one that warms up.
absl::StatusOr<double> TimeAlone(Trial& trial, const TrialOptions& options);

// Times a candidate that was not run before, in `options.rounds` turns; fewer if it is clearly
// slower. `expected`: the seconds of the incumbent, on whose scale the timing is.
absl::StatusOr<search::Timing> TimeNew(Trial& incumbent, Trial& candidate, double expected,
                                       const TrialOptions& options);
// The same after a comparison, in `options.confirming_rounds` turns.
absl::StatusOr<search::Timing> TimeAgain(Trial& incumbent, Trial& candidate, double expected,
                                         const TrialOptions& options);

// Returns DATA_LOSS if the candidate's results on any kind of inputs are not those of `right`
// (compare_results.h). `kernel` is the runner's; it may name some of its outputs as inputs, which
// are then not compared.
absl::Status CompareTrials(const kernel::Kernel& kernel, Trial& right, Trial& candidate,
                           double tolerance, const TrialOptions& options);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_COMPARE_TRIALS_H_
