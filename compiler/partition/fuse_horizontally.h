// Small kernels that do not depend on each other, as stages of one: the many little updates of an
// optimizer.
#ifndef KILN_COMPILER_PARTITION_FUSE_HORIZONTALLY_H_
#define KILN_COMPILER_PARTITION_FUSE_HORIZONTALLY_H_

#include <cstdint>

#include "compiler/partition/clustering.h"

namespace kiln::partition {

// Elements of work that one such kernel does at most; it has no grid.
inline constexpr int64_t kMaxHorizontalWork = 64 << 10;

void FuseHorizontally(Clustering* clustering);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_FUSE_HORIZONTALLY_H_
