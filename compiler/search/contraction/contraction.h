// Finds contractions among stages: sums of products of two factors, such as a matmul, a convolution
// or one of its gradients. (The groups of indices are those of the tensor-contraction literature:
// M, N, batch and K.)
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_CONTRACTION_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_CONTRACTION_H_

#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/stage/schedule_writer.h"

namespace kiln::search {

struct Contraction {
  // Axes in the kernel's order.
  std::vector<int> only[2];  // parallel; only factor 0, or only factor 1, depends on them
  std::vector<int> batch;    // parallel; both factors depend on them, or neither
  std::vector<int> reduce;   // summed over
  const ir::Node* factor[2] = {nullptr, nullptr};
};

// Returns nullopt if the stage is not a sum of products. `parallel` and `reduce` are the stage's
// axes, after fusing.
std::optional<Contraction> FindContraction(const kernel::Stage& stage, const ScheduleWriter& writer,
                                           const std::vector<int>& parallel,
                                           const std::vector<int>& reduce);

// Returns whether the factor is a load at an index without division.
bool HasPlainIndex(const ir::Node* factor);
// Returns whether the factor loads one element for each point, unconditionally, at an index without
// division: it can be read in place.
bool IsPlainLoad(const ir::Node* factor);
// The same, but the load may be of a short float that is cast to float32.
bool IsWidenedLoad(const ir::Node* factor);
// Returns the distance in memory between two neighbours along an axis, for the main load of
// `factor`; 0 if the address does not change.
int64_t StepOf(const ir::Node* factor, const ir::Node* range);

// Returns the layout for staging `factor`: its axes in the order of `axes`. A parallel and a reduce
// axis that it uses only in a sum are joined into one dimension, unless one of them is in `apart`.
std::vector<schedule::StageOperand::Dimension> StagedLayout(const ir::Node* factor,
                                                            const ScheduleWriter& writer,
                                                            const std::vector<int>& axes,
                                                            const Contraction& contraction,
                                                            const std::vector<int>& apart = {});

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_CONTRACTION_H_
