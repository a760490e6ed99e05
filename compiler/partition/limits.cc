#include "compiler/partition/limits.h"

#include <algorithm>

namespace kiln::partition {
namespace {

constexpr int64_t kEnoughTasks = 16;
constexpr int64_t kBlocksPerUnit = 2;
// Elements that a block of threads computes in less time than it takes to start another kernel.
constexpr int64_t kSmallBlockWork = 8 << 10;

}  // namespace

bool IsWide(const drivers::Limits& limits) { return limits.threads_per_block > 1; }

int64_t SharedBytes(const drivers::Limits& limits) {
  if (limits.threads_per_block < kBlockThreadsNeeded) return 0;
  return std::min(kSharedBytesMax, limits.shared_bytes_per_block);
}

int64_t EnoughPoints(const drivers::Limits& limits) {
  if (!IsWide(limits)) return kEnoughTasks;
  return std::max(kEnoughTasks, kBlocksPerUnit * limits.compute_units);
}

bool IsSharedOut(int64_t work, int64_t points, const drivers::Limits& limits) {
  if (work <= kSmallWork || points >= EnoughPoints(limits)) return true;
  return IsWide(limits) && work / points <= kSmallBlockWork;
}

}  // namespace kiln::partition
