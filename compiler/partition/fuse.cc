#include "compiler/partition/fuse.h"

#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "compiler/ir/walk.h"

namespace kiln::partition {

using ir::Node;
using ir::Op;

namespace {

bool IsReduce(const Node* node) {
  return node->op() == Op::kReduceSum || node->op() == Op::kReduceProd ||
         node->op() == Op::kReduceMax;
}

class Fuser {
 public:
  explicit Fuser(const graph::Graph& graph) : graph_(graph) {}

  absl::StatusOr<Partition> Run() {
    partition_.context = graph_.context;
    std::vector<const Node*> roots = graph_.outputs;
    for (const graph::Update& update : graph_.updates) roots.push_back(update.value);
    order_ = ir::TopologicalOrder(roots);
    AddInputs();
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      AddResult(graph_.outputs[i], Tensor::Kind::kOutput, static_cast<int>(i));
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      AddResult(graph_.updates[i].value, Tensor::Kind::kUpdate, static_cast<int>(i));
    }
    for (const Node* node : order_) {
      if (IsReduce(node) || node->op() == Op::kContiguous)
        AddTensor(node, Tensor::Kind::kIntermediate, 0);
    }
    for (const Node* node : order_) {
      if (node->op() != Op::kInput && tensors_.contains(node)) AddGroup(node);
    }
    return std::move(partition_);
  }

 private:
  void AddInputs() {
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      partition_.tensors.push_back({Tensor::Kind::kInput, static_cast<int>(i),
                                    graph_.inputs[i].dtype, graph_.inputs[i].shape, nullptr});
    }
    for (const Node* node : order_) {
      if (node->op() != Op::kInput) continue;
      const int index = static_cast<int>(node->attr<ir::InputAttr>().index);
      partition_.tensors[index].node = node;
      tensors_[node] = index;
    }
  }
  void AddTensor(const Node* node, Tensor::Kind kind, int index) {
    auto [it, inserted] = tensors_.try_emplace(node, static_cast<int>(partition_.tensors.size()));
    if (inserted) partition_.tensors.push_back({kind, index, node->dtype(), node->shape(), node});
  }
  void AddResult(const Node* node, Tensor::Kind kind, int index) {
    if (auto known = tensors_.find(node); known != tensors_.end()) {
      partition_.copies.push_back({known->second, kind, index});
      return;
    }
    AddTensor(node, kind, index);
  }

  void AddGroup(const Node* root) {
    if (ir::NumElements(root->shape()) == 0) return;
    Group group;
    Stage stage;
    Value value;
    value.node = root;
    value.tensor = tensors_.at(root);
    value.axes.resize(root->shape().size());
    for (size_t i = 0; i < root->shape().size(); ++i) {
      if (root->shape()[i] == 1) continue;
      value.axes[i] = {{static_cast<int>(group.loops.size()), 1, root->shape()[i]}};
      stage.loops.push_back(static_cast<int>(group.loops.size()));
      group.loops.push_back(root->shape()[i]);
    }
    if (IsReduce(root)) {
      for (const int64_t axis : root->attr<ir::IntsAttr>().values) {
        const int64_t extent = root->operand(0)->shape()[axis];
        value.reduce_axes.push_back({{static_cast<int>(group.loops.size()), 1, extent}});
        stage.reduce_loops.push_back(static_cast<int>(group.loops.size()));
        group.loops.push_back(extent);
      }
    }
    absl::flat_hash_set<const Node*> seen;
    std::vector<const Node*> pending(root->operands().begin(), root->operands().end());
    while (!pending.empty()) {
      const Node* node = pending.back();
      pending.pop_back();
      if (!seen.insert(node).second) continue;
      if (auto tensor = tensors_.find(node); tensor != tensors_.end()) {
        group.reads.push_back(tensor->second);
        continue;
      }
      pending.insert(pending.end(), node->operands().begin(), node->operands().end());
    }
    group.writes.push_back(value.tensor);
    stage.values.push_back(std::move(value));
    group.stages.push_back(std::move(stage));
    partition_.groups.push_back(std::move(group));
  }

  const graph::Graph& graph_;
  Partition partition_;
  std::vector<const Node*> order_;
  absl::flat_hash_map<const Node*, int> tensors_;
};

}  // namespace

absl::StatusOr<Partition> Fuse(const graph::Graph& graph) { return Fuser(graph).Run(); }

}  // namespace kiln::partition
