// Compiles, times and checks candidates for one kernel's schedule: the measurer of a beam search.
#ifndef KILN_SERVER_TUNER_KERNEL_TRIALS_H_
#define KILN_SERVER_TUNER_KERNEL_TRIALS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/schedule.h"
#include "compiler/search/beam.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/target.h"
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

// Results of candidates that are not chosen are not compared.
//
// Not thread-safe; calls `compile` on several threads. Keeps a digest and a timing for each machine
// code.
class KernelTrials : public search::Measurer {
 public:
  // `compile` makes the image of a schedule: in worker processes, so that a candidate that LLVM
  // cannot compile ends only a worker. The kernel and the runner must outlive this.
  KernelTrials(const kernel::Kernel& kernel, const drivers::Target& target,
               workers::CompileFunction compile, TrialRunner& runner, TrialOptions options);

  // The first candidate, without an incumbent, is the heuristic's: INTERNAL if its results differ
  // from the plain schedule's.
  std::vector<absl::StatusOr<search::Timing>> Measure(
      const search::Measured* incumbent, absl::Span<const search::Candidate> candidates) override;

  // Compares the results first: DATA_LOSS if they are wrong.
  absl::StatusOr<search::Timing> Confirm(const search::Measured& incumbent,
                                         const search::Candidate& candidate) override;

  // Candidates whose machine code had been timed before.
  int repeated() const { return repeated_; }

 private:
  absl::StatusOr<drivers::KernelImage> Compile(const schedule::Schedule& schedule) const;
  absl::StatusOr<std::unique_ptr<Trial>> CompileAndLoad(const schedule::Schedule& schedule);
  absl::StatusOr<search::Timing> MeasureFirst(const drivers::KernelImage& image);
  absl::StatusOr<search::Timing> MeasureNew(const search::Measured& incumbent,
                                            const drivers::KernelImage& image);
  absl::StatusOr<search::Timing> MeasureImage(const search::Measured* incumbent,
                                              const drivers::KernelImage& image);
  absl::Status LoadIncumbent(const search::Measured& incumbent);
  absl::StatusOr<search::Timing> TakeTurns(const search::Measured& incumbent, Trial& candidate,
                                           int rounds);
  absl::Status CompareWithPlain();
  absl::Status Compare(Trial& right, Trial& candidate);
  absl::Status CompareWithSpread(Trial& right, kernel::Sample sample, const Outputs& want,
                                 const Outputs& got);
  int RepetitionsOf(double seconds) const;
  double SecondsMax(double expected) const;

  const kernel::Kernel& kernel_;
  const drivers::Target target_;
  const std::string text_;
  const workers::CompileFunction compile_;
  TrialRunner& runner_;
  const TrialOptions options_;
  const double tolerance_;
  std::unique_ptr<Trial> heuristic_;
  std::unique_ptr<Trial> incumbent_;
  std::string incumbent_schedule_;
  // By the digest of the machine code.
  absl::flat_hash_map<std::string, absl::StatusOr<search::Timing>> timings_;
  int repeated_ = 0;
};

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_KERNEL_TRIALS_H_
