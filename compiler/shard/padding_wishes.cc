#include "compiler/shard/padding_wishes.h"

#include "compiler/shard/mask.h"
#include "compiler/shard/padded_shape.h"
#include "compiler/shard/rules.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;
using ir::Shape;

class PaddingWisher {
 public:
  explicit PaddingWisher(const graph::Graph& graph) : graph_(graph) {}

  absl::flat_hash_map<const Node*, Shape> Run(const std::vector<const Node*>& order) && {
    const graph::Sharding& sharding = *graph_.sharding;
    for (const graph::Update& update : graph_.updates) {
      Add(update.value, Padded(sharding.inputs[update.input], update.value));
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      Add(graph_.outputs[i], Padded(sharding.outputs[i], graph_.outputs[i]));
    }
    for (auto it = order.rbegin(); it != order.rend(); ++it) PassOn(*it);
    return std::move(wishes_);
  }

 private:
  Shape Padded(const graph::Spec& spec, const Node* node) const {
    return PaddedShape(graph_.sharding->mesh, spec, node->shape());
  }

  // The first wish for a dimension wins.
  void Add(const Node* node, const Shape& shape) {
    if (shape == node->shape()) return;
    Shape& wish = wishes_.try_emplace(node, node->shape()).first->second;
    for (size_t dim = 0; dim < wish.size(); ++dim) {
      if (wish[dim] == node->shape()[dim]) wish[dim] = shape[dim];
    }
  }

  void PassOn(const Node* node) {
    if (node->op() == Op::kShard) {
      Add(node->operand(0),
          Padded(graph::Decode(ir::IntsOf(node), node->shape().size()), node->operand(0)));
    }
    const auto found = wishes_.find(node);
    if (found == wishes_.end()) return;
    const Shape wish = found->second;  // a copy: adding wishes moves it
    switch (RuleOf(node->op())) {
      case RuleKind::kElementwise:
        for (const Node* operand : node->operands()) Add(operand, wish);
        return;
      case RuleKind::kShard:
        return Add(node->operand(0), wish);
      case RuleKind::kReduce:
        if (!IsOuterProduct(node->operand(0))) return;
        return Add(node->operand(0), ExactIn(ir::IntsOf(node), node->operand(0)->shape(), wish));
      case RuleKind::kMovement:
        return PassThroughMovement(node, wish);
      default:
        return;
    }
  }

  void PassThroughMovement(const Node* node, const Shape& wish) {
    const Node* operand = node->operand(0);
    if (node->op() == Op::kReshape) {
      if (const auto below = PaddedReshape(node->shape(), wish, operand->shape())) {
        Add(operand, *below);
      }
    }
    if (node->op() != Op::kPermute) return;
    Shape below(wish.size());
    for (size_t dim = 0; dim < wish.size(); ++dim) below[ir::IntsOf(node)[dim]] = wish[dim];
    Add(operand, below);
  }

  const graph::Graph& graph_;
  absl::flat_hash_map<const Node*, Shape> wishes_;
};

}  // namespace

absl::flat_hash_map<const Node*, Shape> PaddingWishes(const graph::Graph& graph,
                                                      const std::vector<const Node*>& order) {
  return PaddingWisher(graph).Run(order);
}

}  // namespace kiln::shard
