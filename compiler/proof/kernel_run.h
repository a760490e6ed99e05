// A kernel evaluated at samples of its points: what a scheduled kernel must give there.
#ifndef KILN_COMPILER_PROOF_KERNEL_RUN_H_
#define KILN_COMPILER_PROOF_KERNEL_RUN_H_

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/kernel/kernel.h"
#include "compiler/proof/evaluator.h"
#include "compiler/proof/samples.h"

namespace kiln::proof {

// What became of an element of a buffer: its value, and how often it was written.
struct Written {
  Value value = 0;
  int64_t times = 0;
  bool operator==(const Written&) const = default;
};
// By buffer and index.
using Element = std::pair<int, int64_t>;
using Memory = absl::flat_hash_map<Element, Written>;

// The value that a local has where no sampled point has written it.
Value UnwrittenLocal(int buffer, ir::DType dtype);

class KernelRun : private Evaluator {
 public:
  // All must outlive the run.
  KernelRun(const kernel::Kernel& kernel, const schedule::Plan& plan, const Sampler& sampler)
      : kernel_(kernel), plan_(plan), sampler_(sampler) {}

  // The globals that the sampled points write, for the inputs of a seed.
  const Memory& Run(const Samples& samples, uint64_t seed);
  // The values of the ranges where the last run's `element` is written last, for a message: "r0=3
  // r2=17".
  std::string PointOf(const Element& element, const Samples& samples);

 private:
  // An axis that is part of no other, with its sampled values.
  struct Root {
    int axis = 0;
    std::vector<int64_t> values;
  };
  std::vector<Root> RootsOf(int stage, bool reduce, bool ordered, const Samples& samples) const;
  void ForEach(absl::Span<const Root> roots, absl::FunctionRef<void()> visit);
  void Set(int axis, int64_t value);
  void RunStage(const kernel::Stage& stage);
  std::string Point();

  Value Load(int buffer, ir::DType dtype, int64_t index) override;
  void ForEachPoint(absl::Span<const ir::Node* const> ranges,
                    absl::FunctionRef<void()> visit) override;

  const kernel::Kernel& kernel_;
  const schedule::Plan& plan_;
  const Sampler& sampler_;
  uint64_t seed_ = 0;
  Memory globals_;
  absl::flat_hash_map<Element, Value> locals_;
  std::vector<Root> reduce_;  // of the stage that runs
  const Element* watched_ = nullptr;
  std::string watched_point_;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_KERNEL_RUN_H_
