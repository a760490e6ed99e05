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

bool IsNewValue(const Partition& partition, int tensor) {
  return partition.tensors[tensor].kind == Tensor::Kind::kUpdate;
}

// Returns the groups that come last, and adds up the bytes that they replace: those that replace
// inputs or read their new values, and on which only such groups depend. A program may need an
// update early, such as an optimizer's number of steps, if one kernel makes more than that.
std::vector<bool> FindLast(const graph::Graph& graph, const Partition& partition, int64_t* saved) {
  const size_t size = partition.groups.size();
  std::vector<bool> is_last(size, false);
  std::vector<bool> needed_early(partition.tensors.size(), false);
  for (size_t i = size; i-- > 0;) {
    const Group& group = partition.groups[i];
    const auto is_needed = [&](int tensor) { return needed_early[tensor]; };
    const auto is_new = [&](int tensor) { return IsNewValue(partition, tensor); };
    const int64_t replaced = ReplacedBytes(graph, partition, group);
    is_last[i] = (replaced > 0 || absl::c_any_of(group.reads, is_new) ||
                  absl::c_any_of(group.updates, is_new)) &&
                 absl::c_none_of(group.writes, is_needed) &&
                 absl::c_none_of(group.updates, is_needed);
    if (is_last[i]) {
      *saved += replaced;
      continue;
    }
    for (const auto* used : {&group.reads, &group.updates})
      for (const int tensor : *used) needed_early[tensor] = true;
  }
  return is_last;
}

}  // namespace

absl::Status CommitLast(const graph::Graph& graph, const drivers::Target& target,
                        Partition* partition) {
  int64_t saved = 0;
  const std::vector<bool> is_last = FindLast(graph, *partition, &saved);
  if (saved == 0) return absl::OkStatus();
  Partition last = *partition;
  last.groups.clear();
  for (const bool at_end : {false, true}) {
    for (size_t i = 0; i < is_last.size(); ++i)
      if (is_last[i] == at_end) last.groups.push_back(partition->groups[i]);
  }
  const auto before = PlanMemory(*partition, target);
  if (!before.ok()) return before.status();
  const auto after = PlanMemory(last, target);
  if (!after.ok()) return after.status();
  if (after->arena_bytes - before->arena_bytes <= saved / kGrowthPart) *partition = std::move(last);
  return absl::OkStatus();
}

}  // namespace kiln::partition
