// Fewer, longer loops: ranges that are only used together as one number become one range, and
// ranges of extent 1 are removed. An elementwise kernel over [128, 32, 20, 20] becomes one loop of
// 1,638,400.
#ifndef KILN_COMPILER_KERNEL_MERGE_RANGES_H_
#define KILN_COMPILER_KERNEL_MERGE_RANGES_H_

#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Two ranges of one list (the grid, a stage's ranges, or its reduce ranges) merge if in every index
// sum the outer one's coefficient is the inner one's times the inner extent. The kernel's meaning
// is unchanged; range ids are new and count up from 0 in the order of the loops.
void MergeRanges(Kernel* kernel, ir::Context& context);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_MERGE_RANGES_H_
