#include "compiler/partition/cluster/build_partition.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"
#include "compiler/partition/limits.h"
#include "compiler/partition/memory/local_places.h"
#include "proto/check/check.h"

namespace kiln::partition {

using ir::Node;

namespace {

// Elementwise values that are costly (CostlyArithmetic), or at most this small, are kept in locals
// and not recomputed.
constexpr int64_t kFewElements = 64;
// Bound on the nodes of other clusters' values that a stage recomputes: a chain of such values
// would otherwise be computed from its beginning at each of its ends.
constexpr int kInlinedMax = 256;

// A cluster and a stage.
using Place = std::pair<int, int>;

// A value may be stored (for other kernels), kept in a local (for later stages) and used in place
// (within its stage), all at once.
struct Decision {
  std::set<Place> needed;  // the places that use the value
  bool global = false;     // stored to a tensor
  bool local = false;
  bool in_place = false;  // computed in its own stage, only for that stage
};

class Builder {
 public:
  Builder(const graph::Graph& graph, const Clustering& clustering, const drivers::Target& target)
      : graph_(graph),
        all_(clustering),
        costly_(CostlyArithmetic(target)),
        decisions_(clustering.members.size()) {
    for (const Cluster& cluster : all_.clusters) {
      const KeptBytes kept =
          FindKeptBytes(all_, cluster.stages, GridPoints(cluster, cluster.grid), cluster.tiled);
      local_bytes_left_.push_back(all_.task_bytes_max() - kept.total);
      arguments_left_.push_back(all_.arguments_max - CountArguments(all_, cluster.stages));
    }
  }

  Partition Run() {
    partition_.context = graph_.context;
    AddInputs();
    AddResults();
    AddUpdated();
    for (size_t i = all_.members.size(); i-- > 0;) Decide(static_cast<int>(i));
    AddIntermediates();
    FindStoredReads();
    for (const int cluster : all_.InOrder()) AddGroup(cluster);
    // As much work as building it.
    KILN_VALIDATE(*this, 1);
    return std::move(partition_);
  }

  // Checks that every tensor is made once, before it is read, and that the inputs come first.
  void Validate() const {
    const absl::Status legal = Verify(partition_, graph_);
    KILN_CHECK(legal.ok()) << legal.message();
    KILN_CHECK_GE(partition_.tensors.size(), graph_.inputs.size());
    for (size_t i = 0; i < partition_.tensors.size(); ++i) {
      const bool is_input = partition_.tensors[i].kind == Tensor::Kind::kInput;
      KILN_CHECK_EQ(is_input, i < graph_.inputs.size()) << "tensor " << i;
    }
    KILN_CHECK_LE(partition_.groups.size(), all_.clusters.size());
  }

 private:
  Place PlaceOf(int member) const {
    return {all_.members[member].cluster, all_.members[member].stage};
  }

  void AddInputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const graph::Input& input = graph_.inputs[i];
      partition_.tensors.push_back(
          {Tensor::Kind::kInput, static_cast<int>(i), input.dtype, input.shape, nullptr});
    }
    // Inputs that nothing reads keep their tensor, so that the first tensors are numbered like the
    // inputs.
    const std::vector<const Node*> roots = graph::Roots(graph_);
    for (const Node* node : ir::TopologicalOrder(roots)) {
      if (node->op() != ir::Op::kInput) continue;
      const int index = static_cast<int>(node->attr<ir::InputAttr>().index);
      partition_.tensors[index].node = node;
      tensor_of_[node] = index;
    }
  }

  void AddTensor(const Node* node, Tensor::Kind kind, int index) {
    tensor_of_[node] = static_cast<int>(partition_.tensors.size());
    KILN_CHECK(kind != Tensor::Kind::kInput);
    partition_.tensors.push_back({kind, index, node->dtype(), node->shape(), node});
  }

  void AddResults() {
    auto add = [&](const Node* node, Tensor::Kind kind, size_t index) {
      const int number = static_cast<int>(index);
      // The value is an input, or already another result.
      if (auto known = tensor_of_.find(node); known != tensor_of_.end()) {
        partition_.copies.push_back({known->second, kind, number});
        return;
      }
      AddTensor(node, kind, number);
      if (auto member = all_.member_of.find(node); member != all_.member_of.end()) {
        decisions_[member->second].global = true;
      }
    };
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      add(graph_.outputs[i], Tensor::Kind::kOutput, i);
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      add(graph_.updates[i].value, Tensor::Kind::kUpdate, i);
    }
  }

  // A scatter's result is in the tensor that it overwrites. Goes from the last scatter to the
  // first: a chain of scatters overwrites the tensor that holds the last one's result.
  void AddUpdated() {
    for (size_t i = all_.members.size(); i-- > 0;) {
      const Node* node = all_.members[i].node;
      if (!all_.members[i].scatter) continue;
      if (!tensor_of_.contains(node)) AddTensor(node, Tensor::Kind::kIntermediate, 0);
      tensor_of_[node->operand(0)] = tensor_of_.at(node);
      decisions_[all_.member_of.at(node->operand(0))].global = true;
      decisions_[i].global = true;
    }
  }

  // Users come before operands, so all uses of the value are known by now.
  void Decide(int number) {
    const Member& member = all_.members[number];
    Decision& decision = decisions_[number];
    const bool must_store = IsMaterialised(member.node);
    std::set<Place> inline_at;
    for (const Place& place : decision.needed) {
      if (place == PlaceOf(number)) {
        decision.in_place = true;
      } else if (place.first != member.cluster) {
        if (must_store || decision.global || member.storage != Storage::kNearby ||
            inlined_[place] + member.nodes > kInlinedMax ||
            arguments_left_[place.first] < static_cast<int>(member.reads.size())) {
          decision.global = true;
        } else {
          inline_at.insert(place);
        }
      } else if (decision.local || must_store || all_.clusters[member.cluster].tiled ||
                 TakeLocal(member)) {
        decision.local = true;
      } else {
        inline_at.insert(place);
      }
    }
    if (decision.global) {
      // If one reader needs the value stored, the other kernels read it, too.
      std::erase_if(inline_at, [&](const Place& place) { return place.first != member.cluster; });
    }
    for (const Place& place : inline_at) {
      if (place.first == member.cluster) continue;
      inlined_[place] += member.nodes;
      arguments_left_[place.first] -= static_cast<int>(member.reads.size());
    }
    if (decision.global || decision.local || decision.in_place) inline_at.insert(PlaceOf(number));
    for (const Place& place : inline_at) {
      for (const Read& read : member.reads) Need(read.leaf, place);
    }
  }

  void Need(const Node* leaf, const Place& place) {
    if (auto member = all_.member_of.find(leaf); member != all_.member_of.end()) {
      decisions_[member->second].needed.insert(place);
    } else {
      input_reads_[place.first].insert(tensor_of_.at(leaf));
    }
  }

  int64_t LocalElements(const Member& member) const {
    int64_t elements = ir::NumElements(member.node->shape());
    const Cluster& cluster = all_.clusters[member.cluster];
    // A local holds the part of one point of the grid.
    for (const int loop : cluster.grid) elements /= cluster.loops[loop];
    return elements;
  }

  // Returns whether the value is worth a local; if so, deducts its size.
  bool TakeLocal(const Member& member) {
    const int64_t elements = LocalElements(member);
    if (elements > kFewElements && member.arithmetic < costly_) return false;
    const int64_t bytes = elements * ir::SizeOf(member.node->dtype());
    int64_t& left = local_bytes_left_[member.cluster];
    if (bytes > all_.local_bytes_max || bytes > left) return false;
    left -= bytes;
    KILN_CHECK_GE(left, 0) << "cluster " << member.cluster;
    return true;
  }

  void AddIntermediates() {
    for (size_t i = 0; i < decisions_.size(); ++i) {
      const Node* node = all_.members[i].node;
      if (decisions_[i].global && !tensor_of_.contains(node)) {
        AddTensor(node, Tensor::Kind::kIntermediate, 0);
      }
    }
  }

  void AddGroup(int number) {
    const Cluster& cluster = all_.clusters[number];
    Group group;
    group.loops = cluster.loops;
    LocalPlaces places(cluster.tiled);
    for (const std::vector<int>& members : cluster.stages) AddStage(members, &group, &places);
    group.locals = places.locals();
    // Other kernels recompute all of its values.
    if (group.stages.empty()) return;
    // A grid is the loops that several stages share; a single stage needs none.
    if (group.stages.size() > 1) group.grid = cluster.grid;
    for (Stage& stage : group.stages) CollectLoops(group, &stage);
    AddReads(number, &group);
    partition_.groups.push_back(std::move(group));
  }

  // Returns the last stage of the value's own cluster that uses it.
  int LastUse(int number) const {
    int last = all_.members[number].stage;
    for (const Place& place : decisions_[number].needed) {
      if (place.first == all_.members[number].cluster) last = std::max(last, place.second);
    }
    return last;
  }

  void AddStage(const std::vector<int>& members, Group* group, LocalPlaces* places) {
    Stage stage;
    bool stores = false;
    for (const int i : members) {
      const Member& member = all_.members[i];
      const Decision& decision = decisions_[i];
      // All readers recompute the value.
      if (!decision.global && !decision.local && !decision.in_place) continue;
      Value value;
      value.node = member.node;
      value.axes = ValueAxes(member);
      if (member.reduction) {
        for (const int64_t axis : member.node->attr<ir::IntsAttr>().values) {
          value.reduce_axes.push_back(member.axes[axis]);
        }
      }
      if (member.scatter) {
        value.reduce_axes = {member.axes[member.node->attr<ir::ScatterAttr>().axis]};
      }
      if (decision.global) {
        value.tensor = tensor_of_.at(member.node);
        (member.scatter ? group->updates : group->writes).push_back(value.tensor);
      }
      if (decision.local) {
        value.local =
            places->Add({LocalElements(member), member.node->dtype()}, member.stage, LastUse(i));
      }
      stores = stores || decision.global || decision.local;
      stage.values.push_back(std::move(value));
    }
    // A stage whose values are only used within the stage itself is not needed.
    if (stores) group->stages.push_back(std::move(stage));
  }

  // Orders the loops by the first stored value, so that its innermost dimension is the innermost
  // loop.
  static void CollectLoops(const Group& group, Stage* stage) {
    auto collect = [&](const std::vector<Digits>& axes, std::vector<int>* loops) {
      for (const Digits& axis : axes) {
        for (const Digit& digit : axis) {
          const bool known = absl::c_linear_search(group.grid, digit.loop) ||
                             absl::c_linear_search(*loops, digit.loop);
          if (!known) loops->push_back(digit.loop);
        }
      }
    };
    for (const bool stored : {true, false}) {
      for (const Value& value : stage->values) {
        if ((value.tensor >= 0) != stored) continue;
        collect(value.axes, &stage->loops);
        collect(value.reduce_axes, &stage->reduce_loops);
      }
    }
  }

  // Runs after AddIntermediates, since only then every stored value has a tensor number.
  void FindStoredReads() {
    for (size_t i = 0; i < decisions_.size(); ++i) {
      if (!decisions_[i].global) continue;
      for (const Place& place : decisions_[i].needed) {
        if (place.first == all_.members[i].cluster) continue;
        stored_reads_[place.first].push_back(tensor_of_.at(all_.members[i].node));
      }
    }
  }

  void AddReads(int cluster, Group* group) {
    std::set<int> reads;
    if (auto inputs = input_reads_.find(cluster); inputs != input_reads_.end()) {
      reads = inputs->second;
    }
    if (auto stored = stored_reads_.find(cluster); stored != stored_reads_.end()) {
      reads.insert(stored->second.begin(), stored->second.end());
    }
    // FindReads counts the tensor that a scatter overwrites as read; a kernel must not list it
    // twice.
    for (const int tensor : group->updates) reads.erase(tensor);
    group->reads.assign(reads.begin(), reads.end());
  }

  const graph::Graph& graph_;
  const Clustering& all_;
  const double costly_;
  Partition partition_;
  std::vector<Decision> decisions_;
  std::vector<int> arguments_left_;          // by cluster
  std::vector<int64_t> local_bytes_left_;    // by cluster, for values that may also be recomputed
  absl::flat_hash_map<Place, int> inlined_;  // nodes of other clusters
  absl::flat_hash_map<const Node*, int> tensor_of_;
  absl::flat_hash_map<int, std::set<int>> input_reads_;  // by cluster
  absl::flat_hash_map<int, std::vector<int>>
      stored_reads_;  // tensors of other clusters, by cluster
};

}  // namespace

Partition BuildPartition(const graph::Graph& graph, const Clustering& clustering,
                         const drivers::Target& target) {
  return Builder(graph, clustering, target).Run();
}

}  // namespace kiln::partition
