#include "compiler/partition/cluster/merge_rows.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "compiler/partition/limits.h"
#include "proto/check/check.h"

namespace kiln::partition {

namespace {

constexpr size_t kMergedStagesMax = 16;
constexpr int kRoundsMax = 4;

class RowMerger {
 public:
  explicit RowMerger(Clustering* clustering) : all_(*clustering) {}

  void Run() {
    // Merged clusters may merge again.
    for (int round = 0; round < kRoundsMax && MergeOnce(); ++round) {
    }
    KILN_VALIDATE(all_, all_.members.size() + all_.clusters.size());
  }

 private:
  // Maps loops of the reader's grid to loops of the source's.
  using LoopMap = absl::flat_hash_map<int, int>;

  bool MergeOnce() {
    bool merged = false;
    for (size_t i = 0; i < all_.clusters.size(); ++i) {
      const int reader = static_cast<int>(i);
      if (!IsRows(all_.clusters[i]) || IsApart(all_, all_.clusters[i])) continue;
      for (const int source : SourcesOf(reader)) {
        if (!TryMerge(reader, source)) continue;
        merged = true;
        break;
      }
    }
    return merged;
  }

  static bool IsRows(const Cluster& cluster) {
    if (cluster.stages.empty() || cluster.contraction || cluster.scatter) return false;
    if (cluster.tiled) return false;
    // A small kernel without a grid counts as a single row.
    return !cluster.grid.empty() || cluster.work <= kSmallWork;
  }

  std::vector<int> SourcesOf(int reader) const {
    std::vector<int> sources;
    ForEachRead(reader, [&](const Member&, const Read&, const Member& source) {
      const int cluster = source.cluster;
      if (cluster != reader && !absl::c_linear_search(sources, cluster)) sources.push_back(cluster);
    });
    return sources;
  }

  template <typename Visit>
  void ForEachRead(int cluster, Visit visit) const {
    for (const std::vector<int>& stage : all_.clusters[cluster].stages) {
      for (const int i : stage) {
        const Member& member = all_.members[i];
        for (const Read& read : member.reads) {
          auto found = all_.member_of.find(read.leaf);
          if (found != all_.member_of.end()) visit(member, read, all_.members[found->second]);
        }
      }
    }
  }

  bool TryMerge(int reader, int source) {
    const Cluster& from = all_.clusters[reader];
    const Cluster& into = all_.clusters[source];
    if (from.nodes + into.nodes > kClusterNodesMax) return false;
    if (!IsRows(into) || from.stages.size() + into.stages.size() > kMergedStagesMax) return false;
    // Without a grid nothing runs in parallel, so the work must stay small.
    if (from.grid.empty() && from.work + into.work > kSmallWork) return false;
    // Merged kernels share one grid, so the two must match loop for loop.
    if (from.grid.size() != into.grid.size()) return false;
    // A cluster on such a path would have to run after the source and before the reader.
    if (all_.dependencies.ReachesOverOthers(reader, source)) return false;
    std::optional<LoopMap> map = MatchGrids(reader, source);
    if (!map.has_value() || !ReadsAreCheap(reader, source)) return false;
    std::vector<std::vector<int>> stages = into.stages;
    stages.insert(stages.end(), from.stages.begin(), from.stages.end());
    if (!LocalsFit(all_, stages, GridPoints(into, into.grid))) return false;
    if (!ArgumentsFit(all_, stages)) return false;
    Merge(reader, source, *map);
    return true;
  }

  // Every read between the two must stay in its row, matching whole loops.
  std::optional<LoopMap> MatchGrids(int reader, int source) const {
    const Cluster& from = all_.clusters[reader];
    const Cluster& into = all_.clusters[source];
    LoopMap map;
    bool fits = true;
    ForEachRead(reader, [&](const Member& member, const Read& read, const Member& value) {
      if (!fits || value.cluster != source) return;
      const std::vector<Digits> axes = ValueAxes(value);
      for (size_t i = 0; i < axes.size(); ++i) {
        const bool in_grid = absl::c_any_of(axes[i], [&](const Digit& digit) {
          return absl::c_linear_search(into.grid, digit.loop);
        });
        if (!in_grid) continue;
        std::optional<Digits> own;
        if (read.access.axes[i].has_value()) own = Substitute(*read.access.axes[i], member.axes);
        fits = fits && own.has_value() && MatchLoops(from, *own, into, axes[i], &map);
      }
    });
    // If a loop of the grid is not matched, it is unknown which points correspond.
    if (!fits || map.size() != into.grid.size()) return std::nullopt;
    return map;
  }

  static bool MatchLoops(const Cluster& from, const Digits& own, const Cluster& into,
                         const Digits& theirs, LoopMap* map) {
    auto pairs = Align(own, theirs);
    if (!pairs.has_value()) return false;
    for (const auto& [mine, digit] : *pairs) {
      if (!absl::c_linear_search(into.grid, digit.loop)) continue;
      if (mine.loop == kUnknownLoop) return false;
      const bool whole = mine.extent == from.loops[mine.loop] && mine.stride == 1 &&
                         digit.extent == into.loops[digit.loop] && digit.stride == 1;
      if (!whole || !absl::c_linear_search(from.grid, mine.loop)) return false;
      const auto [known, inserted] = map->try_emplace(mine.loop, digit.loop);
      // Another read has matched this loop with a different one.
      if (!inserted && known->second != digit.loop) return false;
    }
    return true;
  }

  // A value that is too large for a local and is not a reduction is recomputed.
  bool ReadsAreCheap(int reader, int source) const {
    const Cluster& into = all_.clusters[source];
    const int64_t points = GridPoints(into, into.grid);
    bool cheap = true;
    ForEachRead(reader, [&](const Member&, const Read&, const Member& value) {
      if (value.cluster != source) return;
      const int64_t bytes =
          ir::NumElements(value.node->shape()) / points * ir::SizeOf(value.node->dtype());
      cheap = cheap && (bytes <= all_.local_bytes_max || value.reduction || value.arithmetic <= 1);
    });
    return cheap;
  }

  void Merge(int reader, int source, const LoopMap& map) {
    KILN_CHECK_NE(reader, source);
    KILN_CHECK_EQ(map.size(), all_.clusters[source].grid.size());
    all_.dependencies.Merge(reader, source);
    Cluster& from = all_.clusters[reader];
    Cluster& into = all_.clusters[source];
    // The reader's loops that the map replaces stay in the list unused: stages use only the loops
    // in their axes.
    const int offset = static_cast<int>(into.loops.size());
    into.loops.insert(into.loops.end(), from.loops.begin(), from.loops.end());
    into.work += from.work;
    into.nodes += from.nodes;
    for (const std::vector<int>& stage : from.stages) {
      for (const int i : stage) {
        Member& member = all_.members[i];
        member.cluster = source;
        member.stage = static_cast<int>(into.stages.size());
        for (Digits& axis : member.axes) {
          for (Digit& digit : axis) {
            auto shared = map.find(digit.loop);
            digit.loop = shared == map.end() ? digit.loop + offset : shared->second;
          }
        }
      }
      into.stages.push_back(stage);
    }
    from = Cluster{};
  }

  Clustering& all_;
};

}  // namespace

void MergeRows(Clustering* clustering) { RowMerger(clustering).Run(); }

}  // namespace kiln::partition
