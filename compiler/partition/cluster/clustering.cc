#include "compiler/partition/cluster/clustering.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/partition/memory/local_places.h"
#include "proto/check/check.h"

namespace kiln::partition {

namespace {

// Visits clusters, each after those it depends on.
class DependencyOrder {
 public:
  explicit DependencyOrder(const Clustering& clustering)
      : all_(clustering), placed_(clustering.clusters.size(), false) {}

  std::vector<int> Run() {
    for (size_t i = 0; i < all_.clusters.size(); ++i) Place(static_cast<int>(i));
    return std::move(order_);
  }

 private:
  void Place(int cluster) {
    // Uses an explicit stack: chains of clusters can be as long as the graph, too long for
    // recursion.
    // Each cluster with its dependencies that are still to be visited.
    std::vector<std::pair<int, std::vector<int>>> path;
    auto enter = [&](int next) {
      if (placed_[next] || all_.clusters[next].stages.empty()) return;
      placed_[next] = true;
      std::vector<int> needs = all_.dependencies.Needs(next);
      // Taken from the back, so that lower numbers come first.
      std::reverse(needs.begin(), needs.end());
      path.emplace_back(next, std::move(needs));
    };
    enter(cluster);
    while (!path.empty()) {
      auto& [current, needs] = path.back();
      if (needs.empty()) {
        order_.push_back(current);
        path.pop_back();
      } else {
        const int next = needs.back();
        needs.pop_back();
        enter(next);
      }
    }
  }

  const Clustering& all_;
  std::vector<bool> placed_;
  std::vector<int> order_;
};

class ClusteringVerifier {
 public:
  explicit ClusteringVerifier(const Clustering& clustering)
      : all_(clustering), seen_(clustering.members.size(), false) {}

  absl::Status Run() {
    for (size_t i = 0; i < all_.clusters.size(); ++i) {
      if (absl::Status s = VerifyCluster(static_cast<int>(i)); !s.ok()) return s;
    }
    for (size_t i = 0; i < seen_.size(); ++i) {
      if (!seen_[i]) return Error(all_.members[i].cluster, "lacks member ", i);
    }
    return VerifyOrder();
  }

 private:
  static absl::Status Error(int cluster, const char* what, size_t member) {
    return absl::InternalError(absl::StrCat("cluster ", cluster, " ", what, member));
  }

  absl::Status VerifyCluster(int number) {
    const Cluster& cluster = all_.clusters[number];
    for (const int loop : cluster.grid) {
      if (!IsLoop(cluster, loop)) return Error(number, "has no loop ", loop);
    }
    for (size_t stage = 0; stage < cluster.stages.size(); ++stage) {
      for (const int i : cluster.stages[stage]) {
        const Member& member = all_.members[i];
        const bool agrees = member.cluster == number && member.stage == static_cast<int>(stage);
        if (!agrees || seen_[i]) return Error(number, "is not the one place of member ", i);
        seen_[i] = true;
        if (!HasAxes(cluster, member)) return Error(number, "lacks the loops of member ", i);
      }
    }
    return absl::OkStatus();
  }

  static bool IsLoop(const Cluster& cluster, int loop) {
    return loop >= 0 && loop < static_cast<int>(cluster.loops.size());
  }

  static bool HasAxes(const Cluster& cluster, const Member& member) {
    if (member.axes.size() != member.space.size()) return false;
    for (size_t i = 0; i < member.axes.size(); ++i) {
      // A reduction over no elements has an axis of size 0, for which there is no loop.
      if (member.space[i] > 0 && ExtentOf(member.axes[i]) != member.space[i]) return false;
      for (const Digit& digit : member.axes[i]) {
        if (!IsLoop(cluster, digit.loop)) return false;
        if (digit.stride * digit.extent > cluster.loops[digit.loop]) return false;
      }
    }
    return true;
  }

  absl::Status VerifyOrder() const {
    // InOrder visits each cluster once, even in a cycle; a cycle shows here as a read of a cluster
    // that is not done.
    std::vector<bool> done(all_.clusters.size(), false);
    for (const int number : all_.InOrder()) {
      done[number] = true;
      for (const std::vector<int>& stage : all_.clusters[number].stages) {
        for (const int i : stage) {
          for (const Read& read : all_.members[i].reads) {
            const int source = all_.ClusterOf(read.leaf);
            if (source >= 0 && !done[source])
              return Error(number, "comes before what it reads, ", source);
          }
        }
      }
    }
    return absl::OkStatus();
  }

  const Clustering& all_;
  std::vector<bool> seen_;
};

std::string LoopsText(const Cluster& cluster, const std::vector<int>& loops) {
  std::string text;
  for (const int loop : loops) absl::StrAppend(&text, " l", loop, ":", cluster.loops[loop]);
  return text;
}

// Finds the values that one stage makes and another uses.
class KeptFinder {
 public:
  // Maps each member to the last stage that uses it.
  using Kept = absl::flat_hash_map<int, int>;

  // `all`: no stage recomputes a value of another one.
  KeptFinder(const Clustering& clustering, const std::vector<std::vector<int>>& stages, bool all)
      : all_(clustering), keep_all_(all) {
    for (size_t stage = 0; stage < stages.size(); ++stage) {
      for (const int member : stages[stage]) stage_of_[member] = static_cast<int>(stage);
    }
  }

  Kept Run() {
    for (const auto& [member, stage] : stage_of_) Use(member, stage);
    return std::move(kept_);
  }

 private:
  void Use(int first, int stage) {
    std::vector<int> open = {first};
    while (!open.empty()) {
      const int user = open.back();
      open.pop_back();
      if (!used_.emplace(user, stage).second) continue;
      for (const Read& read : all_.members[user].reads) {
        const auto member = all_.member_of.find(read.leaf);
        if (member == all_.member_of.end()) continue;
        const auto made = stage_of_.find(member->second);
        if (made == stage_of_.end() || made->second == stage) continue;
        if (keep_all_ || IsMaterialised(read.leaf)) {
          int& last = kept_[member->second];
          last = std::max(last, stage);
        } else {
          // The stage may recompute the value from the value's operands.
          open.push_back(member->second);
        }
      }
    }
  }

  const Clustering& all_;
  const bool keep_all_;
  absl::flat_hash_map<int, int> stage_of_;
  absl::flat_hash_set<std::pair<int, int>> used_;  // members, and the stages that compute them
  Kept kept_;
};

}  // namespace

KeptBytes FindKeptBytes(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
                        int64_t points, bool tiled) {
  KeptBytes kept;
  if (stages.size() < 2) return kept;
  KeptFinder finder(clustering, stages, tiled);
  LocalPlaces places(tiled);
  const KeptFinder::Kept members = finder.Run();
  for (size_t stage = 0; stage < stages.size(); ++stage) {
    for (const int member : stages[stage]) {
      const auto found = members.find(member);
      if (found == members.end()) continue;
      const ir::Node* node = clustering.members[member].node;
      const Local local = {ir::NumElements(node->shape()) / points, node->dtype()};
      kept.largest = std::max(kept.largest, local.elements * ir::SizeOf(local.dtype));
      places.Add(local, static_cast<int>(stage), found->second);
    }
  }
  for (const Local& local : places.locals()) {
    const int64_t bytes = local.elements * ir::SizeOf(local.dtype);
    // In a block's memory each value begins at its own cache line.
    kept.total += tiled ? (bytes + 63) / 64 * 64 : bytes;
  }
  return kept;
}

bool LocalsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages,
               int64_t points, bool tiled) {
  const KeptBytes kept = FindKeptBytes(clustering, stages, points, tiled);
  if (tiled) return kept.total <= clustering.tile_bytes_max;
  return kept.largest <= clustering.local_bytes_max && kept.total <= clustering.task_bytes_max();
}

int CountArguments(const Clustering& clustering, const std::vector<std::vector<int>>& stages) {
  absl::flat_hash_set<const ir::Node*> tensors;
  for (const std::vector<int>& stage : stages) {
    for (const int i : stage) {
      tensors.insert(clustering.members[i].node);
      for (const Read& read : clustering.members[i].reads) tensors.insert(read.leaf);
    }
  }
  return static_cast<int>(tensors.size());
}

bool ArgumentsFit(const Clustering& clustering, const std::vector<std::vector<int>>& stages) {
  // Usually there are so few that duplicates need not be found.
  size_t uses = 0;
  for (const std::vector<int>& stage : stages) {
    for (const int i : stage) uses += 1 + clustering.members[i].reads.size();
  }
  const size_t limit = static_cast<size_t>(clustering.arguments_max);
  return uses <= limit || static_cast<size_t>(CountArguments(clustering, stages)) <= limit;
}

bool IsApart(const Clustering& clustering, const Cluster& cluster) {
  if (cluster.stages.empty() || cluster.stages[0].empty()) return false;
  const Member& first = clustering.members[cluster.stages[0][0]];
  return clustering.chosen.Has(first.node, Choice::kApart);
}

int64_t GridPoints(const Cluster& cluster, const std::vector<int>& grid) {
  int64_t points = 1;
  for (const int loop : grid) points *= cluster.loops[loop];
  return points;
}

int Clustering::ClusterOf(const ir::Node* leaf) const {
  auto found = member_of.find(leaf);
  return found == member_of.end() ? -1 : members[found->second].cluster;
}

void Clustering::AddDependencies(const Member& member) {
  for (const Read& read : member.reads) {
    // A cluster's reads from itself order its stages, not the clusters.
    const int source = ClusterOf(read.leaf);
    if (source >= 0 && source != member.cluster) dependencies.AddEdge(member.cluster, source);
  }
}

std::vector<int> Clustering::InOrder() const { return DependencyOrder(*this).Run(); }

void Clustering::Validate() const {
  const absl::Status legal = Verify(*this);
  KILN_CHECK(legal.ok()) << legal.message();
  KILN_CHECK_EQ(member_of.size(), members.size());
  for (size_t i = 0; i < members.size(); ++i) {
    const auto found = member_of.find(members[i].node);
    KILN_CHECK(found != member_of.end() && found->second == static_cast<int>(i)) << "member " << i;
  }
  for (size_t i = 0; i < clusters.size(); ++i) {
    const Cluster& cluster = clusters[i];
    int nodes = 0;
    int scatters = 0;
    for (const std::vector<int>& stage : cluster.stages) {
      KILN_CHECK(!stage.empty()) << "a stage of cluster " << i;
      for (const int member : stage) {
        nodes += members[member].nodes;
        scatters += members[member].scatter ? 1 : 0;
      }
    }
    KILN_CHECK_EQ(cluster.nodes, nodes) << "cluster " << i;
    KILN_CHECK_EQ(cluster.scatter, scatters > 0) << "cluster " << i;
    KILN_CHECK_LE(scatters, 1) << "cluster " << i;
  }
}

std::vector<Digits> ValueAxes(const Member& member) {
  KILN_CHECK_EQ(member.axes.size(), member.reduced.size());
  std::vector<Digits> axes = member.axes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (member.reduced[i]) axes[i].clear();
  }
  return axes;
}

absl::Status Verify(const Clustering& clustering) { return ClusteringVerifier(clustering).Run(); }

std::string Print(const Clustering& clustering) {
  std::string text;
  for (const int number : clustering.InOrder()) {
    const Cluster& cluster = clustering.clusters[number];
    absl::StrAppend(&text, "cluster ", number, cluster.contraction ? " contraction" : "",
                    cluster.scatter ? " scatter" : "", "\n");
    if (!cluster.grid.empty()) {
      absl::StrAppend(&text, "  grid", LoopsText(cluster, cluster.grid), "\n");
    }
    for (const std::vector<int>& stage : cluster.stages) {
      text += "  stage\n";
      for (const int i : stage) {
        const ir::Node* node = clustering.members[i].node;
        absl::StrAppend(&text, "    ", std::string(ir::Name(node->op())), " ",
                        std::string(ir::Name(node->dtype())), "[",
                        absl::StrJoin(node->shape(), ","), "]\n");
      }
    }
  }
  return text;
}

}  // namespace kiln::partition
