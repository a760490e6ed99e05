#include "compiler/partition/memory_plan.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "absl/strings/str_cat.h"

namespace kiln::partition {

namespace {

// A tensor in the arena: its groups [first, last] in time and its bytes.
struct Life {
  int tensor = 0;
  int first = 0;
  int last = 0;
  int64_t bytes = 0;

  bool Meets(const Life& other) const { return first <= other.last && other.first <= last; }
};

int64_t AlignedBytes(const Tensor& tensor) {
  const int64_t bytes = ir::NumElements(tensor.shape) * ir::SizeOf(tensor.dtype);
  return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment;
}

std::vector<Life> FindLives(const Partition& partition) {
  const int end = static_cast<int>(partition.groups.size());
  std::vector<Life> by_tensor(partition.tensors.size());
  for (size_t i = 0; i < by_tensor.size(); ++i) {
    by_tensor[i] = {static_cast<int>(i), end, -1, AlignedBytes(partition.tensors[i])};
  }
  auto use = [&](int tensor, int time) {
    by_tensor[tensor].first = std::min(by_tensor[tensor].first, time);
    by_tensor[tensor].last = std::max(by_tensor[tensor].last, time);
  };
  for (int time = 0; time < end; ++time) {
    for (const int tensor : partition.groups[time].writes) use(tensor, time);
    for (const int tensor : partition.groups[time].reads) use(tensor, time);
  }
  for (const Copy& copy : partition.copies) use(copy.tensor, end);
  std::vector<Life> lives;
  for (const Life& life : by_tensor) {
    const bool arena = partition.tensors[life.tensor].kind == Tensor::Kind::kIntermediate;
    if (arena && life.last >= 0) lives.push_back(life);
  }
  return lives;
}

// The lowest offset at which `life` fits beside those that are placed.
int64_t FindOffset(const Life& life, const std::vector<Life>& placed,
                   const std::vector<int64_t>& offsets) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (const Life& other : placed) {
    if (life.Meets(other)) {
      taken.emplace_back(offsets[other.tensor], offsets[other.tensor] + other.bytes);
    }
  }
  std::sort(taken.begin(), taken.end());
  int64_t offset = 0;
  for (const auto& [begin, end] : taken) {
    if (begin - offset >= life.bytes) break;
    offset = std::max(offset, end);
  }
  return offset;
}

}  // namespace

MemoryPlan PlanMemory(const Partition& partition) {
  MemoryPlan plan;
  plan.offsets.assign(partition.tensors.size(), -1);
  std::vector<Life> lives = FindLives(partition);
  std::sort(lives.begin(), lives.end(), [](const Life& a, const Life& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.tensor < b.tensor;
  });
  std::vector<Life> placed;
  for (const Life& life : lives) {
    const int64_t offset = FindOffset(life, placed, plan.offsets);
    plan.offsets[life.tensor] = offset;
    plan.arena_bytes = std::max(plan.arena_bytes, offset + life.bytes);
    plan.arena_bytes_without_reuse += life.bytes;
    placed.push_back(life);
  }
  return plan;
}

absl::Status Verify(const MemoryPlan& plan, const Partition& partition) {
  const std::vector<Life> lives = FindLives(partition);
  for (size_t i = 0; i < lives.size(); ++i) {
    const int64_t begin = plan.offsets[lives[i].tensor];
    const int64_t end = begin + lives[i].bytes;
    if (begin < 0 || begin % kArenaAlignment != 0 || end > plan.arena_bytes) {
      return absl::InternalError(
          absl::StrCat("tensor t", lives[i].tensor, " has no legal place in the arena"));
    }
    for (size_t j = 0; j < i; ++j) {
      const int64_t other = plan.offsets[lives[j].tensor];
      if (!lives[i].Meets(lives[j]) || begin >= other + lives[j].bytes || other >= end) continue;
      return absl::InternalError(absl::StrCat("tensors t", lives[j].tensor, " and t",
                                              lives[i].tensor, " overlap in the arena"));
    }
  }
  return absl::OkStatus();
}

}  // namespace kiln::partition
