// Bounds that several decisions about kernels share.
#ifndef KILN_COMPILER_PARTITION_LIMITS_H_
#define KILN_COMPILER_PARTITION_LIMITS_H_

#include <cstdint>

#include "drivers/interface/target.h"

namespace kiln::partition {

// Elements of work that need no parallelism.
inline constexpr int64_t kSmallWork = 32 << 10;
// Bound on the nodes of all expressions in one kernel, since later passes take time for each.
inline constexpr int kClusterNodesMax = 1024;

// Returns whether a block of threads runs one point of a grid, and many blocks run at once.
bool IsWide(const drivers::Limits& limits);

// A device must support at least this many threads per block, or blocks are not used.
inline constexpr int kBlockThreadsNeeded = 64;
// Available on every GPU. A block with more would leave room for fewer blocks.
inline constexpr int64_t kSharedBytesMax = 48 << 10;
// Returns the bytes of shared memory of a block that kernels use; 0 if there are no blocks.
int64_t SharedBytes(const drivers::Limits& limits);

// Returns the grid size that keeps a device busy: several points per core, or two blocks per unit.
int64_t EnoughPoints(const drivers::Limits& limits);

// Returns whether the work is distributed well among these points, or too small to matter.
bool IsSharedOut(int64_t work, int64_t points, const drivers::Limits& limits);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_LIMITS_H_
