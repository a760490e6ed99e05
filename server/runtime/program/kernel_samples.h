// Times of a program's kernels on one device, from the runs that were timed kernel by kernel.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_KERNEL_SAMPLES_H_
#define KILN_SERVER_RUNTIME_PROGRAM_KERNEL_SAMPLES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "server/metrics/kernel_shares.h"

namespace kiln::runtime {

struct KernelTimes {
  int64_t samples = 0;  // launches that were timed
  double median_seconds = 0;
  double lowest_seconds = 0;
  int launches = 0;      // in one run of the program
  bool is_cold = false;  // only the first run, which is slow, has been timed
};

// Keeps the latest warm runs. The first run is cold: it touches memory and code for the first time.
// It counts only until a warm run has been timed. Not thread-safe.
class KernelSamples {
 public:
  static constexpr size_t kKeptMax = 15;

  // `program` outlives this.
  explicit KernelSamples(const compiler::CompiledProgram& program);

  // Adds a run that took `run_seconds`, and each of the program's calls `call_seconds`. Further
  // elements are not calls and are ignored. Returns false for the cold run.
  bool Add(double run_seconds, absl::Span<const double> call_seconds);

  bool empty() const { return kept_.empty(); }
  // One for each kernel of the program.
  std::vector<KernelTimes> Times() const;
  // Null until a run has been timed. Otherwise the kernels' shares in the kept runs' time.
  const std::shared_ptr<const metrics::KernelShares>& shares() const { return shares_; }

  // Returns the approximate host memory that it takes when it is full.
  static int64_t HostBytes(const compiler::CompiledProgram& program);

 private:
  struct Sample {
    double run_seconds = 0;
    std::vector<double> launch_seconds;  // by kernel: the mean of its launches in this run
  };

  void Validate() const;
  double Median(size_t kernel) const;
  void UpdateShares();

  const compiler::CompiledProgram& program_;
  std::vector<int> launches_;   // by kernel
  std::vector<Sample> kept_;    // a ring
  std::vector<double> lowest_;  // by kernel
  int64_t warm_runs_ = 0;
  std::shared_ptr<const metrics::KernelShares> shares_;
};

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_KERNEL_SAMPLES_H_
