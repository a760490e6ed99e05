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
#include "server/tuner/compare_trials.h"
#include "server/tuner/trial_runner.h"

namespace kiln::tuner {

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
  absl::Status CompareWithPlain();

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
