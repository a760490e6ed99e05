#include "compiler/partition/cluster/fuse_horizontally.h"

#include <vector>

#include "compiler/partition/limits.h"
#include "proto/check/check.h"

namespace kiln::partition {

namespace {

constexpr size_t kFusedStagesMax = 24;
// Bound on the kernels that are still open for more.
constexpr size_t kOpenMax = 8;

bool IsEligible(const Cluster& cluster) {
  // A fused kernel has no grid. Several stages under a grid need theirs, since their locals hold
  // the part of one of its points.
  const bool simple =
      cluster.stages.size() == 1 || (cluster.grid.empty() && !cluster.stages.empty());
  return simple && !cluster.tiled && !cluster.contraction && !cluster.scatter &&
         cluster.work <= kSmallWork;
}

void Absorb(Clustering* clustering, int from, int into) {
  KILN_CHECK_NE(from, into);
  Cluster& source = clustering->clusters[from];
  Cluster& target = clustering->clusters[into];
  const int offset = static_cast<int>(target.loops.size());
  target.loops.insert(target.loops.end(), source.loops.begin(), source.loops.end());
  // The two have no common loop.
  target.grid.clear();
  target.work += source.work;
  target.nodes += source.nodes;
  for (const std::vector<int>& stage : source.stages) {
    for (const int number : stage) {
      Member& member = clustering->members[number];
      member.cluster = into;
      member.stage = static_cast<int>(target.stages.size());
      for (Digits& axis : member.axes) {
        for (Digit& digit : axis) digit.loop += offset;
      }
    }
    target.stages.push_back(stage);
  }
  source = Cluster{};
}

// A fused kernel has no grid, so one task keeps the locals of both.
bool FitTogether(const Clustering& clustering, int from, int into) {
  std::vector<std::vector<int>> stages = clustering.clusters[into].stages;
  const auto& more = clustering.clusters[from].stages;
  stages.insert(stages.end(), more.begin(), more.end());
  return LocalsFit(clustering, stages, 1) && ArgumentsFit(clustering, stages);
}

}  // namespace

void FuseHorizontally(Clustering* clustering) {
  std::vector<int> open;
  for (size_t i = 0; i < clustering->clusters.size(); ++i) {
    const int number = static_cast<int>(i);
    const Cluster& cluster = clustering->clusters[i];
    if (!IsEligible(cluster) || IsApart(*clustering, cluster)) continue;
    bool absorbed = false;
    for (const int target : open) {
      const Cluster& into = clustering->clusters[target];
      if (into.work + cluster.work > kHorizontalWorkMax) continue;
      if (into.stages.size() + cluster.stages.size() > kFusedStagesMax) continue;
      if (!FitTogether(*clustering, number, target)) continue;
      // Either direction would make the merged kernel depend on itself.
      if (clustering->dependencies.Reaches(number, target) ||
          clustering->dependencies.Reaches(target, number))
        continue;
      clustering->dependencies.Merge(number, target);
      Absorb(clustering, number, target);
      absorbed = true;
      break;
    }
    if (absorbed) continue;
    open.push_back(number);
    // Few open kernels keep the search linear in the clusters.
    if (open.size() > kOpenMax) open.erase(open.begin());
  }
  KILN_VALIDATE(*clustering, clustering->members.size() + clustering->clusters.size());
}

}  // namespace kiln::partition
