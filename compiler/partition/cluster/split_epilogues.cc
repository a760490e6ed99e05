#include "compiler/partition/cluster/split_epilogues.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/dtype.h"
#include "proto/check/check.h"

namespace kiln::partition {

using ir::Node;

namespace {

class Splitter {
 public:
  explicit Splitter(Clustering* clustering) : all_(*clustering) {}

  void Run() {
    const size_t count = all_.clusters.size();
    for (size_t i = 0; i < count; ++i) {
      if (IsToSplit(static_cast<int>(i))) Split(static_cast<int>(i));
    }
    if (all_.clusters.size() == count) return;
    // Readers of the moved values need edges to the new cluster. The contraction keeps its old
    // edges: they make no cycle, since nothing that its epilogue reads depends on it.
    for (const Member& member : all_.members) all_.AddDependencies(member);
    KILN_VALIDATE(all_, all_.members.size() + all_.clusters.size());
  }

 private:
  bool IsToSplit(int number) const {
    const Cluster& cluster = all_.clusters[number];
    if (!cluster.contraction || cluster.stages.size() != 1) return false;
    bool has_epilogue = false;
    for (const int i : cluster.stages[0]) {
      const Member& member = all_.members[i];
      if (!member.contraction) has_epilogue = true;
      if (all_.chosen.Has(member.node, Choice::kKeep)) return false;
    }
    if (!has_epilogue) return false;
    const auto is_chosen = [this](int i) {
      return all_.chosen.Has(all_.members[i].node, Choice::kSplit);
    };
    return absl::c_any_of(cluster.stages[0], is_chosen) || StreamsTooMuch(number);
  }

  bool StreamsTooMuch(int number) const {
    const Cluster& cluster = all_.clusters[number];
    absl::flat_hash_set<const Node*> streams;
    for (const int i : cluster.stages[0]) {
      const Member& member = all_.members[i];
      if (member.contraction) {
        if (ir::NumElements(member.node->shape()) < kLargeEpilogue) return false;
        continue;
      }
      for (const Read& read : member.reads) {
        const bool large = ir::NumElements(read.leaf->shape()) >= kLargeEpilogue;
        // Values that the stage itself computes are in registers.
        if (large && all_.ClusterOf(read.leaf) != number) streams.insert(read.leaf);
      }
    }
    return streams.size() > kStreamsMax;
  }

  // Returns whether the member is the rounded result of a contraction that is kept. It is stored
  // instead of the result, in half the memory.
  bool RoundsResult(const Member& member, const absl::flat_hash_set<const Node*>& kept,
                    int number) const {
    if (member.node->op() != ir::Op::kCast || !ir::IsShortFloat(member.node->dtype())) return false;
    return absl::c_all_of(member.reads, [&](const Read& read) {
      if (kept.contains(read.leaf)) return true;
      // A value of the epilogue would make the contraction depend on it.
      return all_.ClusterOf(read.leaf) != number &&
             ir::NumElements(read.leaf->shape()) < kLargeEpilogue;
    });
  }

  void Split(int number) {
    const int fresh = static_cast<int>(all_.clusters.size());
    Cluster epilogue;
    std::vector<int> contraction;
    std::vector<int> elementwise;
    absl::flat_hash_set<const Node*> kept;
    for (const int i : all_.clusters[number].stages[0]) {
      const Member& member = all_.members[i];
      if (member.contraction || RoundsResult(member, kept, number)) {
        contraction.push_back(i);
        kept.insert(member.node);
      } else {
        elementwise.push_back(i);
      }
    }
    KILN_CHECK(!contraction.empty()) << "cluster " << number;
    // A choice may ask to split what only rounds the result.
    if (elementwise.empty()) return;
    for (const int i : elementwise) Move(i, fresh, all_.clusters[number], &epilogue);
    epilogue.stages = {std::move(elementwise)};
    all_.clusters[number].stages = {std::move(contraction)};
    all_.clusters[number].split = true;
    all_.clusters[number].work -= epilogue.work;
    all_.clusters[number].nodes -= epilogue.nodes;
    all_.clusters.push_back(std::move(epilogue));
    loops_.clear();
    all_.dependencies.AddCluster();
  }

  void Move(int member_number, int fresh, const Cluster& from, Cluster* into) {
    Member& member = all_.members[member_number];
    member.cluster = fresh;
    for (Digits& axis : member.axes) {
      for (Digit& digit : axis) digit.loop = LoopIn(into, from, digit.loop);
    }
    into->work += ir::NumElements(member.space);
    into->nodes += member.nodes;
  }

  // Returns the loop's number in the epilogue's cluster.
  int LoopIn(Cluster* into, const Cluster& from, int loop) {
    const auto [found, fresh] = loops_.emplace(loop, static_cast<int>(into->loops.size()));
    if (fresh) {
      // An elementwise epilogue reduces nothing, so all of its loops are its grid.
      into->grid.push_back(found->second);
      into->loops.push_back(from.loops[loop]);
    }
    return found->second;
  }

  Clustering& all_;
  absl::flat_hash_map<int, int> loops_;  // of the cluster that is split
};

}  // namespace

void SplitEpilogues(Clustering* clustering) { Splitter(clustering).Run(); }

}  // namespace kiln::partition
