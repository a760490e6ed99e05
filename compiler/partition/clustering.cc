#include "compiler/partition/clustering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace kiln::partition {

namespace {

// Walks clusters with what they need before them.
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
    // An explicit stack: chains of clusters are as long as the graph, too long for recursion.
    std::vector<std::pair<int, std::vector<int>>> path;  // with what is still to be looked at
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
      // A reduction over nothing has an axis of size 0, which no loop stands for.
      if (member.space[i] > 0 && ExtentOf(member.axes[i]) != member.space[i]) return false;
      for (const Digit& digit : member.axes[i]) {
        if (!IsLoop(cluster, digit.loop)) return false;
        if (digit.stride * digit.extent > cluster.loops[digit.loop]) return false;
      }
    }
    return true;
  }

  absl::Status VerifyOrder() const {
    // InOrder enters each cluster once, even in a cycle, which shows here as a read of a cluster
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

}  // namespace

int Clustering::ClusterOf(const ir::Node* leaf) const {
  auto found = member_of.find(leaf);
  return found == member_of.end() ? -1 : members[found->second].cluster;
}

void Clustering::AddDependencies(const Member& member) {
  for (const Read& read : member.reads) {
    // What a cluster reads from itself orders its stages, not the clusters.
    const int source = ClusterOf(read.leaf);
    if (source >= 0 && source != member.cluster) dependencies.AddEdge(member.cluster, source);
  }
}

std::vector<int> Clustering::InOrder() const { return DependencyOrder(*this).Run(); }

std::vector<Digits> ValueAxes(const Member& member) {
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
