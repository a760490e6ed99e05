// Places the intermediate tensors of a partition in one arena, so that tensors which do not live at
// the same time share bytes. Greedy by size, as in Pisarchyk and Lee, "Efficient memory management
// for deep neural net inference", 2020; beyond a thousand tensors the smaller ones take the best
// fit in the order of time, so that planning stays quick.
#ifndef KILN_COMPILER_PARTITION_MEMORY_PLAN_H_
#define KILN_COMPILER_PARTITION_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "compiler/partition/partition.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

struct MemoryPlan {
  int64_t alignment = drivers::kBufferAlignmentMin;  // the target's
  std::vector<int64_t> offsets;  // in bytes, by tensor; multiples of it; -1: not in the arena
  int64_t arena_bytes = 0;
  int64_t arena_bytes_without_reuse = 0;
};

// Uses the groups' order as time: a tensor lives from the group that writes it through the last
// that reads it (a copy reads after all groups). A group's reads and writes never overlap.
MemoryPlan PlanMemory(const Partition& partition, const drivers::Target& target);

// INTERNAL if a tensor is not aligned, or two that live at the same time overlap in the arena.
absl::Status Verify(const MemoryPlan& plan, const Partition& partition);

// For people; deterministic.
std::string Print(const MemoryPlan& plan);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MEMORY_PLAN_H_
