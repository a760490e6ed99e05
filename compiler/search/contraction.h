// Finds the contractions among stages: a sum of products of two factors, such as a matmul, a
// convolution or one of its gradients. (Index groups as in tensor-contraction literature: M, N,
// batch and K.)
#ifndef KILN_COMPILER_SEARCH_CONTRACTION_H_
#define KILN_COMPILER_SEARCH_CONTRACTION_H_

#include <optional>
#include <vector>

#include "compiler/kernel/kernel.h"
#include "compiler/search/schedule_writer.h"

namespace kiln::search {

struct Contraction {
  // Axes in the kernel's order.
  std::vector<int> only[2];  // parallel, seen by factor 0 or 1 alone
  std::vector<int> batch;    // parallel, seen by both or by none
  std::vector<int> reduce;   // summed over
  const ir::Node* factor[2] = {nullptr, nullptr};
};

// Null if the stage is no sum of products. `parallel` and `reduce` are the stage's axes, after
// fusing.
std::optional<Contraction> FindContraction(const kernel::Stage& stage, const ScheduleWriter& writer,
                                           const std::vector<int>& parallel,
                                           const std::vector<int>& reduce);

// The factor reads one element for each point, unconditionally, at an index without division: it
// can be read where it is.
bool IsPlainLoad(const ir::Node* factor);
// The same, but what is read may be a short float that is made float32 on the way.
bool IsWidenedLoad(const ir::Node* factor);
// How far apart two neighbours along an axis lie in memory, for the load that `factor` mainly is; 0
// if it does not move.
int64_t StepOf(const ir::Node* factor, const ir::Node* range);

// The layout in which `factor` is staged: its axes in order of `axes`, pairs of a parallel and a
// reduce axis that it sees only as a sum joined into one dimension.
std::vector<schedule::StageOperand::Dimension> StagedLayout(const ir::Node* factor,
                                                            const ScheduleWriter& writer,
                                                            const std::vector<int>& axes,
                                                            const Contraction& contraction);

}  // namespace kiln::search

#endif  // KILN_COMPILER_SEARCH_CONTRACTION_H_
