// Compares many kernels, each once, with several schedules on several targets, and counts.
#ifndef KILN_TESTS_FULL_SIZE_SWEEP_H_
#define KILN_TESTS_FULL_SIZE_SWEEP_H_

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "tests/full_size/comparison.h"

namespace kiln::full_size {

struct SweepOptions {
  std::vector<int> lanes;    // of the targets
  int random_schedules = 0;  // in addition to the chosen one, for each target
  int random_settings = 0;   // the same; their schedules must satisfy the proof
  ComparisonOptions comparison;
};

struct Counts {
  int64_t kernels = 0;      // distinct
  int64_t comparisons = 0;  // of a schedule with the plain one
  int64_t random = 0;       // those of them with a random schedule
  int64_t settings = 0;     // those of them with the schedule of a random setting
  int64_t refused = 0;      // drafts of random schedules
  int64_t disproved = 0;    // those of them that the proof refused
  int64_t exact = 0;        // kernels whose results must be equal
  int64_t sampled = 0;      // kernels too large for the plain schedule to compute completely
  int64_t positive = 0;     // kernels with no negative inputs
  int64_t elements = 0;     // compared with the plain schedule's
  int64_t skipped = 0;      // those of them without a bound
  int64_t failures = 0;
};

class Sweep {
 public:
  explicit Sweep(SweepOptions options) : options_(std::move(options)) {}

  // Compares the kernel of this text (as kernel::Print writes it), unless it was compared before.
  // Returns the failures, each with `label`, kernel and schedule; empty if there are none.
  std::string Try(const std::string& text, const std::string& label);

  bool IsNew(const std::string& text) const { return !seen_.contains(text); }
  const Counts& counts() const { return counts_; }
  std::string Summary() const;

 private:
  SweepOptions options_;
  Counts counts_;
  absl::flat_hash_set<std::string> seen_;
};

// Installs a signal handler that prints the current case after a crash and ends the process.
void PrintCaseOnCrash();

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_SWEEP_H_
