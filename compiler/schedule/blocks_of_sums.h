// Cuts long sums of floats into blocks, so that rounding errors do not grow with the number of
// terms. A chain of additions to one accumulator loses about one rounding error per term, and
// adds nothing once the sum is 2^24 times (in float32) as large as a term. A block is added up in
// its own accumulator, which is then added to the one outside; long sums have several levels of
// blocks. This is cascaded summation (Higham, "The Accuracy of Floating Point Summation", 1993).
//
// It holds for every schedule, whether a heuristic, a search or nobody chose it, so there is no
// directive for it.
#ifndef KILN_COMPILER_SCHEDULE_BLOCKS_OF_SUMS_H_
#define KILN_COMPILER_SCHEDULE_BLOCKS_OF_SUMS_H_

#include "compiler/kernel/kernel.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Splits reduce axes and marks those at which a block begins, in each stage that adds too many
// floats to one accumulator. Other stages stay as they are. Requires: the plan is
// complete, and fits the kernel.
void CutLongSums(const kernel::Kernel& kernel, Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_BLOCKS_OF_SUMS_H_
