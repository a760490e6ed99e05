// Evaluates a kernel at samples of its points: the values that a scheduled kernel must also produce
// there.
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

// The final value of a buffer element, and how often it was written.
struct Written {
  Value value = 0;
  int64_t times = 0;
  bool operator==(const Written&) const = default;
};
// By buffer and index.
using Element = std::pair<int, int64_t>;
using Memory = absl::flat_hash_map<Element, Written>;

// Returns the value of a local that no sampled point has written.
Value UnwrittenLocal(int buffer, ir::DType dtype);

class KernelRun : private Evaluator {
 public:
  // All arguments must outlive the run.
  KernelRun(const kernel::Kernel& kernel, const schedule::Plan& plan, const Sampler& sampler)
      : kernel_(kernel), plan_(plan), sampler_(sampler) {}

  // Returns the elements of globals that the sampled points write, for the inputs of a seed.
  const Memory& Run(const Samples& samples, uint64_t seed);
  // Returns the values of the ranges at which the last run wrote `element` last, for a message:
  // "r0=3 r2=17".
  std::string PointOf(const Element& element, const Samples& samples);

 private:
  // An axis that was not split from or fused into another, with its sampled values.
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
  std::vector<Root> reduce_;  // of the current stage
  const Element* watched_ = nullptr;
  std::string watched_point_;
};

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_KERNEL_RUN_H_
