// Places the intermediate tensors of a partition in one arena, so that tensors that are not alive
// at the same time share bytes. Greedy by size, as in Pisarchyk and Lee, "Efficient memory
// management for deep neural net inference", 2020. Beyond a thousand tensors the smaller ones are
// placed by best fit in the order of time, so that planning stays fast.
#ifndef KILN_COMPILER_PARTITION_MEMORY_MEMORY_PLAN_H_
#define KILN_COMPILER_PARTITION_MEMORY_MEMORY_PLAN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/partition/partition.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

struct MemoryPlan {
  int64_t alignment = drivers::kBufferAlignmentMin;  // the target's
  std::vector<int64_t> offsets;  // bytes, by tensor; multiples of alignment; -1: not in the arena
  int64_t arena_bytes = 0;
  int64_t arena_bytes_without_reuse = 0;
};

// Uses the groups' order as time: a tensor is alive from the group that writes it to the last one
// that reads it (a copy reads after all groups). A group's reads and writes never overlap.
// RESOURCE_EXHAUSTED: all tensors together have 2^63 bytes or more.
absl::StatusOr<MemoryPlan> PlanMemory(const Partition& partition, const drivers::Target& target);

// Returns INTERNAL if a tensor is not aligned, or if two that are alive at the same time overlap.
absl::Status Verify(const MemoryPlan& plan, const Partition& partition);

// For people; deterministic.
std::string Print(const MemoryPlan& plan);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MEMORY_MEMORY_PLAN_H_
