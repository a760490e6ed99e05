#include "compiler/autodiff/differentiate.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/autodiff/reverse.h"
#include "compiler/graph/error.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/rules/infer.h"

namespace kiln::autodiff {
namespace {

using ir::Node;
using ir::Op;
using NodeMap = absl::flat_hash_map<const Node*, const Node*>;
// Each gradient of a gradient multiplies the nodes, so a few dozen requests could exhaust any
// memory.
constexpr size_t kNodesMax = 1 << 19;

// y and upstream (null if there is none) of the requests that share a walk.
using Target = std::pair<const Node*, const Node*>;

Target TargetOf(const Node* request) {
  // Operands: y, x and optionally upstream.
  const bool weighted = request->operands().size() == 3;
  return {request->operand(0), weighted ? request->operand(2) : nullptr};
}

std::string TypeOf(const Node* node) {
  return StrCat(ir::Name(node->dtype()), ops::ToString(node->shape()));
}

// Walks a graph in topological order and records the replacement of each node.
class Differentiator {
 public:
  explicit Differentiator(const graph::Graph& graph)
      : graph_(graph), builder_(*graph.context), graph_size_(graph.context->size()) {}

  absl::StatusOr<graph::Graph> Run() {
    const std::vector<const Node*> order = ir::TopologicalOrder(graph::Roots(graph_));
    for (const Node* node : order) {
      if (node->op() == Op::kGradient) requests_[TargetOf(node)].push_back(node);
    }
    for (const Node* node : order) {
      if (node->op() != Op::kGradient) {
        // Its operands were rebuilt before, so a gradient among them is already a plain expression.
        became_[node] = Rebuild(node);
      } else if (!became_.contains(node)) {
        const absl::Status answered = Answer(node);
        if (!answered.ok()) return answered;
      }
    }
    if (!builder_.status().ok()) return builder_.status();
    return Result();
  }

 private:
  const Node* Rebuild(const Node* node) {
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) operands.push_back(became_.at(operand));
    return builder_.context().WithOperands(node, std::move(operands));
  }

  absl::Status Error(const Node* request, std::string_view reason, std::string message) const {
    const auto source = graph_.sources.find(request);
    if (source == graph_.sources.end()) return graph::MakeError(reason, {}, message);
    return graph::MakeError(reason, {{"source", source->second}},
                            StrCat("gradient (", source->second, "): ", message));
  }

  absl::Status Check(const Node* request) const {
    const auto [y, upstream] = TargetOf(request);
    const Node* x = request->operand(1);
    for (const Node* operand : {y, x}) {
      if (ir::IsFloat(operand->dtype())) continue;
      return Error(request, "DTYPE_MISMATCH",
                   StrCat("a gradient ", operand == y ? "of " : "with respect to ", TypeOf(operand),
                          "; it must be of a float dtype"));
    }
    if (upstream == nullptr && !y->shape().empty()) {
      return Error(request, "SHAPE_MISMATCH",
                   StrCat("a gradient of ", TypeOf(y),
                          "; it must be a scalar, or an upstream of its shape must be given"));
    }
    if (upstream != nullptr && TypeOf(upstream) != TypeOf(y)) {
      return Error(request, "SHAPE_MISMATCH",
                   StrCat("an upstream of ", TypeOf(upstream), " for a gradient of ", TypeOf(y),
                          "; both must have one type"));
    }
    return absl::OkStatus();
  }

  // Replaces the request and all others of the same target. Everything that y depends on has been
  // rebuilt, so y does not depend on an x that has not.
  absl::Status Answer(const Node* first) {
    const Target target = TargetOf(first);
    std::vector<const Node*> wanted;
    for (const Node* request : requests_[target]) {
      const absl::Status legal = Check(request);
      if (!legal.ok()) return legal;
      const auto x = became_.find(request->operand(1));
      if (x != became_.end()) wanted.push_back(x->second);
    }
    const Node* y = became_.at(target.first);
    const Node* seed =
        target.second != nullptr ? became_.at(target.second) : builder_.Const(y->dtype(), 1);
    const NodeMap adjoints = Adjoints(builder_, y, seed, wanted);
    // The nodes are interned: nodes that several walks share count once.
    if (builder_.context().size() > kNodesMax + graph_size_) {
      return Error(first, "TOO_LARGE",
                   StrCat("the gradients up to this node need more than ", kNodesMax,
                          " nodes, which is the limit; nest fewer gradients of gradients"));
    }
    for (const Node* request : requests_[target]) {
      const Node* x = request->operand(1);
      const auto rebuilt = became_.find(x);
      const auto adjoint =
          rebuilt == became_.end() ? adjoints.end() : adjoints.find(rebuilt->second);
      became_[request] = adjoint != adjoints.end() ? adjoint->second : builder_.FullLike(x, 0);
    }
    return absl::OkStatus();
  }

  // Detach and with_derivative only affect gradients. Once all gradients are replaced, they are
  // replaced by their values. So is shard except on a mesh that splits, and send except in stages.
  absl::StatusOr<graph::Graph> Result() {
    std::vector<const Node*> roots = graph::Roots(graph_);
    for (const Node*& root : roots) root = became_.at(root);
    NodeMap kept;
    const bool has_mesh = graph_.sharding != nullptr;
    const bool has_stages = has_mesh && graph_.sharding->stages.has_value();
    for (const Node* node : ir::TopologicalOrder(roots)) {
      std::vector<const Node*> operands;
      for (const Node* operand : node->operands()) operands.push_back(kept.at(operand));
      const bool is_done = node->op() == Op::kDetach || node->op() == Op::kWithDerivative ||
                           (node->op() == Op::kShard && (!has_mesh || has_stages)) ||
                           (node->op() == Op::kSend && !has_stages);
      kept[node] =
          is_done ? operands[0] : builder_.context().WithOperands(node, std::move(operands));
    }
    for (const Node*& root : roots) root = kept.at(root);
    graph::Graph result = graph::WithRoots(graph_, roots);
    for (const auto& [node, source] : graph_.sources) {
      const auto rebuilt = became_.find(node);
      if (rebuilt == became_.end()) continue;
      const auto final_node = kept.find(rebuilt->second);
      // If several nodes became one, it gets the first source line that is found.
      if (final_node != kept.end()) result.sources.try_emplace(final_node->second, source);
    }
    return result;
  }

  const graph::Graph& graph_;
  ops::Builder builder_;
  const size_t graph_size_;
  absl::flat_hash_map<Target, std::vector<const Node*>> requests_;
  NodeMap became_;
};

}  // namespace

absl::StatusOr<graph::Graph> Differentiate(const graph::Graph& graph) {
  return Differentiator(graph).Run();
}

}  // namespace kiln::autodiff
