// Lowers one group of a partition to a kernel. Starting at each stored value with one range per
// loop, pushes indices through movement ops (pure arithmetic; pads become valid conditions) until
// it reaches a tensor in memory.
#ifndef KILN_COMPILER_KERNEL_LOWER_H_
#define KILN_COMPILER_KERNEL_LOWER_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/kernel/kernel.h"
#include "compiler/partition/partition.h"

namespace kiln::kernel {

struct LoweredKernel {
  Kernel kernel;             // verified: spec and bounds
  std::vector<int> tensors;  // the partition's tensor of each global buffer, in order: reads first,
                             // then writes, then updates
};

// Makes nodes in `context`, which need not be the partition's: with one context per thread, groups
// can be lowered in parallel. UNIMPLEMENTED names an op that has no lowering; INTERNAL is a defect.
absl::StatusOr<LoweredKernel> Lower(const partition::Partition& partition, int group,
                                    ir::Context& context);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_LOWER_H_
