// Sizes that several decisions about kernels share.
#ifndef KILN_COMPILER_PARTITION_LIMITS_H_
#define KILN_COMPILER_PARTITION_LIMITS_H_

#include <cstdint>

#include "drivers/interface/target.h"

namespace kiln::partition {

// Elements of work that need no parallelism.
inline constexpr int64_t kSmallWork = 32 << 10;
// Nodes of all expressions in one kernel, at most: what comes after takes time for each.
inline constexpr int kMaxClusterNodes = 1024;

// Whether a block of threads runs a point of a grid, and many run at once.
bool IsWide(const drivers::Limits& limits);

// Threads that a device must take in a block to be given any.
inline constexpr int kBlockThreadsNeeded = 64;
// What every GPU has for a block. More of it for one leaves room for fewer.
inline constexpr int64_t kSharedBytesMax = 48 << 10;
// Memory that a block's threads share, as far as kernels use it; 0 where there are no blocks.
int64_t SharedBytes(const drivers::Limits& limits);

// Points of a grid that keep a device busy: some for each core, or two blocks for each unit.
int64_t EnoughPoints(const drivers::Limits& limits);

// Whether so much work is shared out well among so many points, or too small to matter.
bool IsSharedOut(int64_t work, int64_t points, const drivers::Limits& limits);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_LIMITS_H_
