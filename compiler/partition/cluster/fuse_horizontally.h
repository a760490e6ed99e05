// Combines small independent kernels as stages of one kernel: for example the many small updates of
// an optimizer.
#ifndef KILN_COMPILER_PARTITION_CLUSTER_FUSE_HORIZONTALLY_H_
#define KILN_COMPILER_PARTITION_CLUSTER_FUSE_HORIZONTALLY_H_

#include <cstdint>

#include "compiler/partition/cluster/clustering.h"

namespace kiln::partition {

// Bound on the elements of work of one such kernel, since it has no grid.
inline constexpr int64_t kHorizontalWorkMax = 64 << 10;

void FuseHorizontally(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_CLUSTER_FUSE_HORIZONTALLY_H_
