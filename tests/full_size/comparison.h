// Runs one kernel with several schedules: each must give the results of the plain schedule.
#ifndef KILN_TESTS_FULL_SIZE_COMPARISON_H_
#define KILN_TESTS_FULL_SIZE_COMPARISON_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/codegen/testing/executable_code.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/sample_inputs.h"
#include "compiler/schedule/schedule.h"
#include "drivers/interface/target.h"
#include "tests/full_size/error_bound.h"

namespace kiln::full_size {

struct ComparisonOptions {
  uint64_t seed = 1;
  // The approximate maximum of loop points that the plain schedule may compute. Of a kernel with
  // more, samples from all outputs are computed, corners and edges first; the rest of each result
  // is compared with that of the first schedule that was checked.
  int64_t reference_points = 20'000'000;
};

// Inputs are whole numbers if results are then exact or differ little (see error_bound.h), and not
// negative if negative ones give NaN. Each schedule's tasks run last to first, on buffers between
// guard pages, with read-only inputs and scratch full of NaN.
class Comparison {
 public:
  // The kernel's nodes are in `context`; both must outlive this object.
  Comparison(const kernel::Kernel& kernel, ir::Context& context, ComparisonOptions options);
  ~Comparison();

  // Computes the results to compare with. Requires: called once, before all checks.
  absl::Status MakeReference(const drivers::Target& target);

  // Compiles and runs. Returns an empty text if all elements are within twice their bound, or else
  // the difference, or that the kernel does not compile.
  std::string Check(const schedule::Schedule& schedule, const drivers::Target& target);

  // The same for an image of a kernel with these arguments.
  std::string CheckImage(const drivers::KernelImage& image);

  bool complete() const { return complete_; }     // the plain schedule computed everything
  int64_t compared() const { return compared_; }  // elements, with the plain schedule's
  int64_t skipped() const { return skipped_; }    // elements whose bound is not finite or not known
  bool exact() const;                             // all bounds are zero
  bool positive() const { return input_kind_.positive; }  // inputs are not negative
  double largest_bound(int buffer) const { return largest_[buffer]; }

 private:
  using Memory = std::vector<std::unique_ptr<codegen::GuardedMemory>>;

  int64_t BytesOf(const kernel::Buffer& buffer) const;
  void FillInputs();
  std::unique_ptr<codegen::GuardedMemory> NewOutput(int buffer,
                                                    codegen::GuardedMemory::Edge edge) const;
  absl::Status ComputeReference(const drivers::Target& target);
  void RunReference(const codegen::ExecutableCode& code, int64_t grid_size, void* const* arguments,
                    void* scratch);
  bool HasNan() const;
  std::string Compare(int buffer, const void* got);
  std::string CompareElements(int buffer, const void* got, int64_t begin, int64_t end);
  int64_t CountComputed(int buffer, int64_t begin, int64_t end) const;
  double Tolerance(int buffer, int64_t element, double want) const;

  const kernel::Kernel& kernel_;
  const ComparisonOptions options_;
  BoundedKernel bounded_;
  kernel::InputKind input_kind_;
  size_t globals_ = 0;
  bool complete_ = false;
  Memory inputs_;                // by global; null for written ones
  Memory reference_;             // by global of the bounded kernel; null for inputs
  std::vector<double> largest_;  // by global: the largest finite bound
  Memory first_;                 // by global: the first schedule's outputs
  int64_t compared_ = 0;
  int64_t skipped_ = 0;
};

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_COMPARISON_H_
