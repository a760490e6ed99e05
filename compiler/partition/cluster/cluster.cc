#include "compiler/partition/cluster/cluster.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/partition/cluster/join.h"
#include "compiler/partition/cluster/materialize.h"
#include "compiler/partition/cluster/tile.h"
#include "compiler/partition/contraction.h"
#include "compiler/partition/limits.h"
#include "proto/check/check.h"

namespace kiln::partition {

using ir::Node;

namespace {

// Bounds on the values of one kernel, without and with tiles.
constexpr size_t kMembersMax = 48;
constexpr size_t kTiledMembersMax = 96;
// Bound on the readers of a value that a tile is expected to hold at the same time.
constexpr size_t kTileUsersMax = 16;
// Bound on the clusters reading the same data that a value tries to join.
constexpr size_t kSiblingsMax = 6;
// Number of the most recent members among which those clusters are searched.
constexpr size_t kReadersTriedMax = 64;
// Minimum number of adjacent elements in memory that one point of the grid processes.
constexpr int64_t kEnoughRun = 8;

// Returns the product of the trailing extents that the grid does not cut.
int64_t Run(const ir::Shape& space, const std::vector<Digits>& axes, const std::vector<int>& grid) {
  int64_t run = 1;
  for (size_t i = space.size(); i-- > 0;) {
    for (size_t j = axes[i].size(); j-- > 0;) {
      if (absl::c_linear_search(grid, axes[i][j].loop)) return run;
      run *= axes[i][j].extent;
    }
  }
  return run;
}

class Clusterer {
 public:
  Clusterer(const std::vector<Candidate>& candidates, const drivers::Limits& limits,
            ChosenValues chosen)
      : limits_(limits) {
    result_.chosen = std::move(chosen);
    result_.local_bytes_max = limits.local_bytes_max;
    result_.arguments_max = limits.arguments_max;
    result_.tile_bytes_max = static_cast<int>(SharedBytes(limits));
    for (const Candidate& candidate : candidates) {
      if (ir::NumElements(candidate.node->shape()) == 0) continue;
      result_.member_of[candidate.node] = static_cast<int>(result_.members.size());
      result_.members.push_back(MakeMember(candidate));
    }
  }

  Clustering Run() {
    for (size_t i = 0; i < result_.members.size(); ++i) FindMemberReads(static_cast<int>(i));
    for (size_t i = 0; i < result_.members.size(); ++i) {
      const int member = static_cast<int>(i);
      // Operands come before users, so all values that the member reads have a cluster by now.
      if (!TryJoin(member)) Start(member);
      for (const Read& read : result_.members[i].reads) {
        auto& readers = readers_[read.leaf];
        if (readers.empty() || readers.back() != member) readers.push_back(member);
      }
    }
    // As much work as building it.
    KILN_VALIDATE(result_, 1);
    return std::move(result_);
  }

 private:
  static Member MakeMember(const Candidate& candidate) {
    Member member;
    member.node = candidate.node;
    member.storage = candidate.storage;
    member.arithmetic = candidate.arithmetic;
    member.nodes = candidate.nodes;
    member.reduction = IsReduction(candidate.node);
    member.contraction = IsContraction(candidate.node);
    member.scatter = IsScatter(candidate.node);
    member.space = SpaceOf(candidate.node);
    member.reduced.assign(member.space.size(), false);
    if (member.reduction) {
      for (const int64_t axis : candidate.node->attr<ir::IntsAttr>().values) {
        member.reduced[axis] = true;
      }
    }
    if (member.scatter) {
      member.reduced[candidate.node->attr<ir::ScatterAttr>().axis] = true;
    }
    return member;
  }

  void FindMemberReads(int number) {
    Member& member = result_.members[number];
    // A reduction over no elements is a constant.
    if (ir::NumElements(member.space) == 0) return;
    // The walk also stops at empty values, which are never read.
    const auto ends = [&](const Node* node) {
      return IsLeaf(node) || ir::NumElements(node->shape()) == 0;
    };
    member.reads = FindReads(member.node, ends, HasTiles());
    std::erase_if(member.reads, [&](const Read& read) { return !IsLeaf(read.leaf); });
    if (!HasTiles()) return;
    for (const Read& read : member.reads) {
      if (member.reduction || member.scatter) reduced_.insert(read.leaf);
      std::vector<int>& users = users_[read.leaf];
      const bool is_new = users.empty() || users.back() != number;
      if (is_new && users.size() < kTileUsersMax) users.push_back(number);
    }
  }

  bool IsLeaf(const Node* node) const {
    const bool stored = node->op() == ir::Op::kInput || result_.member_of.contains(node);
    return stored && ir::NumElements(node->shape()) > 0;
  }

  // Returns the clusters that the member reads from, those of large values first, since fusion
  // saves their memory traffic.
  std::vector<int> SourceClusters(const Member& member) const {
    std::vector<std::pair<int64_t, int>> ranked;
    for (const Read& read : member.reads) {
      const int cluster = result_.ClusterOf(read.leaf);
      if (cluster >= 0) ranked.emplace_back(-ir::NumElements(read.leaf->shape()), -cluster);
    }
    absl::c_sort(ranked);
    std::vector<int> clusters;
    for (const auto& [elements, negative] : ranked) {
      if (!absl::c_linear_search(clusters, -negative)) clusters.push_back(-negative);
    }
    return clusters;
  }

  // Returns the clusters with a member that reads what this one reads.
  std::vector<int> SiblingClusters(const Member& member) const {
    std::vector<int> clusters;
    for (const Read& read : member.reads) {
      // A small value, which many clusters read, is no reason to join.
      if (2 * ir::NumElements(read.leaf->shape()) < ir::NumElements(member.space)) continue;
      auto found = readers_.find(read.leaf);
      if (found == readers_.end()) continue;
      const std::vector<int>& readers = found->second;
      const size_t oldest = readers.size() - std::min(readers.size(), kReadersTriedMax);
      for (size_t i = readers.size(); i-- > oldest && clusters.size() < kSiblingsMax;) {
        const int cluster = result_.members[readers[i]].cluster;
        if (!absl::c_linear_search(clusters, cluster)) clusters.push_back(cluster);
      }
    }
    return clusters;
  }

  // Joining must not make the cluster depend on itself.
  bool MayJoin(int number, int cluster) const {
    const Member& member = result_.members[number];
    if (result_.clusters[cluster].scatter) return false;
    const size_t members_max = result_.clusters[cluster].tiled ? kTiledMembersMax : kMembersMax;
    if (CountMembers(result_.clusters[cluster]) >= members_max) return false;
    if (result_.clusters[cluster].nodes + member.nodes > kClusterNodesMax) return false;
    std::vector<std::vector<int>> stages = result_.clusters[cluster].stages;
    stages.push_back({number});
    if (!ArgumentsFit(result_, stages)) return false;
    return absl::c_none_of(member.reads, [&](const Read& read) {
      const int source = result_.ClusterOf(read.leaf);
      return source >= 0 && source != cluster && result_.dependencies.Reaches(source, cluster);
    });
  }

  static size_t CountMembers(const Cluster& cluster) {
    size_t count = 0;
    for (const std::vector<int>& stage : cluster.stages) count += stage.size();
    return count;
  }

  bool TryJoin(int number) {
    const Member& member = result_.members[number];
    if (member.contraction || member.scatter) return false;
    if (ir::NumElements(member.space) == 0) return false;
    if (result_.chosen.Has(member.node, Choice::kApart)) return false;
    const std::vector<int> sources = SourceClusters(member);
    // Tries the closest fusion first: values that stay in registers, then data that is read once
    // for two values, then values that are passed from stage to stage in a local.
    for (const int cluster : sources) {
      if (MayJoin(number, cluster) && TrySameStage(number, cluster)) return true;
    }
    for (const int cluster : SiblingClusters(member)) {
      if (result_.clusters[cluster].contraction) continue;
      if (MayJoin(number, cluster) && TrySameStage(number, cluster)) return true;
    }
    for (const int cluster : sources) {
      if (HasTiles() && MayJoin(number, cluster) && TryTiledStage(number, cluster)) return true;
    }
    for (const int cluster : sources) {
      if (result_.clusters[cluster].contraction || result_.clusters[cluster].tiled) continue;
      if (MayJoin(number, cluster) && TryNewStage(number, cluster)) return true;
    }
    return false;
  }

  bool TrySameStage(int number, int cluster) {
    const Cluster& candidate = result_.clusters[cluster];
    if (candidate.contraction && result_.members[number].reduction) return false;
    const JoinPlanner planner(result_, number, cluster);
    for (size_t stage = 0; stage < candidate.stages.size(); ++stage) {
      std::optional<Join> join = planner.PlanSameStage(static_cast<int>(stage));
      if (!join.has_value() || !FitsStage(number, candidate, *join)) continue;
      Apply(number, cluster, *std::move(join));
      return true;
    }
    return false;
  }

  // The value, or what it reads of other stages, may have to be kept from stage to stage.
  bool FitsStage(int number, const Cluster& cluster, const Join& join) const {
    if (cluster.stages.size() < 2) return true;
    std::vector<std::vector<int>> stages = cluster.stages;
    stages[join.stage].push_back(number);
    return LocalsFit(result_, stages, GridPoints(cluster, join.grid), cluster.tiled);
  }

  bool HasTiles() const { return result_.tile_bytes_max > 0; }

  bool TryTiledStage(int number, int cluster) {
    const Cluster& into = result_.clusters[cluster];
    if (!IsElementwiseStage({number}) || IsReduced(number)) return false;
    if (into.tiled) return JoinTiles(number, cluster);
    const bool simple = into.stages.size() == 1 && !into.contraction && !into.scatter;
    if (!simple || !IsElementwiseStage(into.stages[0])) return false;
    const int64_t elements = result_.tile_bytes_max / BytesPerPlace(number, cluster);
    // First tries the smallest number of whole rows, which gives the most tiles.
    for (const int64_t points_enough : {int64_t{0}, EnoughPoints(limits_)}) {
      TileCut cut(&result_, cluster);
      if (!cut.Make(elements, points_enough) || !JoinTiles(number, cluster)) continue;
      cut.Keep();
      return true;
    }
    return false;
  }

  bool IsElementwiseStage(const std::vector<int>& members) const {
    return absl::c_none_of(members, [this](int i) {
      return result_.members[i].reduction || result_.members[i].scatter;
    });
  }

  // Returns whether a reduction reads the member, or a value that the member reads. Then the
  // reduction should compute that itself, as rows, which tiles would prevent.
  bool IsReduced(int number) const {
    const Member& member = result_.members[number];
    return reduced_.contains(member.node) || absl::c_any_of(member.reads, [this](const Read& read) {
             return reduced_.contains(read.leaf);
           });
  }

  // A block's memory holds the values that the member reads of the cluster, and at the same time
  // the results of the member and of others that read the same. The results of the next stage need
  // as much.
  int64_t BytesPerPlace(int number, int cluster) const {
    absl::flat_hash_set<int> read, made = {number};
    for (const Read& of : result_.members[number].reads) {
      if (result_.ClusterOf(of.leaf) != cluster) continue;
      read.insert(result_.member_of.at(of.leaf));
      for (const int user : users_.at(of.leaf)) {
        const Member& other = result_.members[user];
        if (other.cluster < 0 && other.space == result_.members[number].space) made.insert(user);
      }
    }
    const auto bytes = [this](const absl::flat_hash_set<int>& members) {
      int64_t sum = 0;
      for (const int i : members) sum += ir::SizeOf(result_.members[i].node->dtype());
      return sum;
    };
    return 2 * std::max(bytes(read), bytes(made));
  }

  bool JoinTiles(int number, int cluster) {
    Cluster& into = result_.clusters[cluster];
    std::optional<Join> join = JoinPlanner(result_, number, cluster).PlanNewStage();
    // Neither larger tiles nor a value with more elements per tile would fit.
    if (!join.has_value() || join->grid != into.grid) return false;
    const Node* node = result_.members[number].node;
    const int64_t elements = ir::NumElements(node->shape()) / GridPoints(into, into.grid);
    if (elements * ir::SizeOf(node->dtype()) > result_.tile_bytes_max) return false;
    std::vector<std::vector<int>> stages = into.stages;
    stages.push_back({number});
    if (!LocalsFit(result_, stages, GridPoints(into, into.grid), true)) return false;
    into.tiled = true;
    Apply(number, cluster, *std::move(join));
    return true;
  }

  bool TryNewStage(int number, int cluster) {
    std::optional<Join> join = JoinPlanner(result_, number, cluster).PlanNewStage();
    if (!join.has_value()) return false;
    const Cluster& candidate = result_.clusters[cluster];
    if (!FitsAllLocals(candidate, GridPoints(candidate, join->grid))) return false;
    Member& member = result_.members[number];
    if (!IsWorthwhile(member, candidate, *join)) {
      member.stayed_out = true;
      if (!result_.chosen.Has(member.node, Choice::kJoin)) return false;
    }
    Apply(number, cluster, *std::move(join));
    return true;
  }

  bool IsWorthwhile(const Member& member, const Cluster& candidate, const Join& join) const {
    const int64_t work = candidate.work + ir::NumElements(member.space);
    if (!IsSharedOut(work, GridPoints(candidate, join.grid), limits_)) return false;
    return work <= kSmallWork || RunsAreLong(member, candidate, join);
  }

  // Any value so far may be read by the new stage.
  bool FitsAllLocals(const Cluster& cluster, int64_t points) const {
    int64_t total = 0;
    for (const std::vector<int>& stage : cluster.stages) {
      for (const int i : stage) {
        const Member& value = result_.members[i];
        const int64_t bytes =
            ir::NumElements(value.node->shape()) / points * ir::SizeOf(value.node->dtype());
        // A cheap elementwise value that is too large for a local is recomputed in each stage
        // instead.
        const bool kept = IsMaterialised(value.node);
        if (bytes > result_.local_bytes_max && (kept || value.arithmetic > 1)) return false;
        if (kept) total += bytes;
      }
    }
    return total <= result_.task_bytes_max();
  }

  // A grid over columns would access memory with long strides.
  bool RunsAreLong(const Member& member, const Cluster& cluster, const Join& join) const {
    int64_t largest = ir::NumElements(member.space);
    for (const std::vector<int>& stage : cluster.stages) {
      for (const int i : stage) {
        largest = std::max(largest, ir::NumElements(result_.members[i].space));
      }
    }
    auto is_long = [&](const Member& value, const std::vector<Digits>& axes) {
      // A value much smaller than the largest adds little to the memory traffic.
      if (4 * ir::NumElements(value.space) < largest) return true;
      return partition::Run(value.space, axes, join.grid) >= kEnoughRun;
    };
    if (!is_long(member, join.axes)) return false;
    for (const std::vector<int>& stage : cluster.stages) {
      for (const int i : stage) {
        if (!is_long(result_.members[i], result_.members[i].axes)) return false;
      }
    }
    return true;
  }

  void Apply(int number, int cluster, Join join) {
    Member& member = result_.members[number];
    Cluster& into = result_.clusters[cluster];
    KILN_CHECK_EQ(member.cluster, -1) << "member " << number << " joins twice";
    KILN_CHECK(!into.scatter && !member.scatter) << "member " << number;
    KILN_CHECK_EQ(join.axes.size(), member.space.size());
    KILN_CHECK_LT(join.stage, static_cast<int>(into.stages.size()));
    into.loops.insert(into.loops.end(), join.fresh.begin(), join.fresh.end());
    into.grid = std::move(join.grid);
    if (join.stage < 0) {
      join.stage = static_cast<int>(into.stages.size());
      into.stages.emplace_back();
    }
    into.stages[join.stage].push_back(number);
    into.work += ir::NumElements(member.space);
    into.nodes += member.nodes;
    member.cluster = cluster;
    member.stage = join.stage;
    member.axes = std::move(join.axes);
    result_.AddDependencies(member);
  }

  void Start(int number) {
    Member& member = result_.members[number];
    KILN_CHECK_EQ(member.cluster, -1) << "member " << number << " starts a second cluster";
    Cluster cluster;
    for (size_t i = 0; i < member.space.size(); ++i) {
      Digits digits;
      // An axis of size 1 needs no loop: no digits mean index 0.
      if (member.space[i] > 1) {
        const int loop = static_cast<int>(cluster.loops.size());
        digits.push_back({loop, 1, member.space[i]});
        cluster.loops.push_back(member.space[i]);
        if (!member.reduced[i]) cluster.grid.push_back(loop);
      }
      member.axes.push_back(std::move(digits));
    }
    cluster.stages = {{number}};
    cluster.contraction = member.contraction;
    cluster.scatter = member.scatter;
    cluster.work = ir::NumElements(member.space);
    cluster.nodes = member.nodes;
    member.cluster = static_cast<int>(result_.clusters.size());
    member.stage = 0;
    result_.clusters.push_back(std::move(cluster));
    result_.dependencies.AddCluster();
    result_.AddDependencies(member);
    KILN_CHECK_EQ(member.axes.size(), member.space.size());
  }

  const drivers::Limits& limits_;
  Clustering result_;
  absl::flat_hash_map<const Node*, std::vector<int>> readers_;  // members, by leaf
  // With tiles, by leaf: the first members that read it, and the leaves that reductions read.
  absl::flat_hash_map<const Node*, std::vector<int>> users_;
  absl::flat_hash_set<const Node*> reduced_;
};

}  // namespace

Clustering MakeClusters(const graph::Graph& graph, const drivers::Target& target,
                        ChosenValues chosen) {
  std::vector<Candidate> candidates = ChooseStored(graph, target, chosen);
  return Clusterer(candidates, target.limits, std::move(chosen)).Run();
}

}  // namespace kiln::partition
