#include "compiler/partition/memory/commit_last.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/partition/memory/memory_plan.h"

namespace kiln::partition {
namespace {

// The part of the saved bytes by which the arena may grow.
constexpr int64_t kGrowthPart = 2;

// Returns the bytes of the inputs that the group reads and replaces.
int64_t ReplacedBytes(const graph::Graph& graph, const Partition& partition, const Group& group) {
  int64_t bytes = 0;
  for (const int tensor : group.writes) {
    const Tensor& written = partition.tensors[tensor];
    if (written.kind != Tensor::Kind::kUpdate) continue;
    // The tensors of the inputs are the first.
    if (!absl::c_linear_search(group.reads, graph.updates[written.index].input)) continue;
    bytes += ir::BytesOf(written.dtype, written.shape);
  }
  return bytes;
}

}  // namespace

absl::Status CommitLast(const graph::Graph& graph, const drivers::Target& target,
                        Partition* partition) {
  int64_t saved = 0;
  std::vector<bool> is_late(partition->groups.size(), false);
  std::vector<bool> made_late(partition->tensors.size(), false);
  for (size_t i = 0; i < is_late.size(); ++i) {
    const Group& group = partition->groups[i];
    const int64_t replaced = ReplacedBytes(graph, *partition, group);
    const auto is_made_late = [&](int tensor) { return made_late[tensor]; };
    is_late[i] = replaced > 0 || absl::c_any_of(group.reads, is_made_late) ||
                 absl::c_any_of(group.updates, is_made_late);
    if (!is_late[i]) continue;
    saved += replaced;
    for (const int tensor : group.writes) made_late[tensor] = true;
  }
  if (saved == 0) return absl::OkStatus();
  Partition last = *partition;
  last.groups.clear();
  for (const bool late : {false, true}) {
    for (size_t i = 0; i < is_late.size(); ++i)
      if (is_late[i] == late) last.groups.push_back(partition->groups[i]);
  }
  const auto before = PlanMemory(*partition, target);
  if (!before.ok()) return before.status();
  const auto after = PlanMemory(last, target);
  if (!after.ok()) return after.status();
  if (after->arena_bytes - before->arena_bytes <= saved / kGrowthPart) *partition = std::move(last);
  return absl::OkStatus();
}

}  // namespace kiln::partition
