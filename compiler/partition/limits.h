// Sizes that several decisions about kernels share.
#ifndef KILN_COMPILER_PARTITION_LIMITS_H_
#define KILN_COMPILER_PARTITION_LIMITS_H_

#include <cstdint>

namespace kiln::partition {

// Points of a grid that keep a device busy.
inline constexpr int64_t kEnoughPoints = 16;
// Elements of work that need no parallelism.
inline constexpr int64_t kSmallWork = 32 << 10;
// Nodes of all expressions in one kernel, at most: what comes after takes time for each.
inline constexpr int kMaxClusterNodes = 1024;

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_LIMITS_H_
