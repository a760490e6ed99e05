#include "compiler/shard/propagate.h"

#include <algorithm>
#include <utility>

#include "compiler/graph/verify.h"
#include "compiler/ir/walk.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;

// Adds the splits of `more` that agree with the existing ones.
void Join(const Spec& more, Spec* spec) {
  for (size_t dim = 0; dim < spec->size(); ++dim) {
    const std::vector<int>& wanted = more[dim];
    std::vector<int>& axes = (*spec)[dim];
    if (axes.size() >= wanted.size() || !std::equal(axes.begin(), axes.end(), wanted.begin())) {
      continue;
    }
    for (size_t i = axes.size(); i < wanted.size() && !IsSplitBy(*spec, wanted[i]); ++i) {
      axes.push_back(wanted[i]);
    }
  }
}

Spec WithoutDim(Spec spec, int64_t dim) {
  spec[dim].clear();
  return spec;
}

Spec WithoutAxesOfOne(const Mesh& mesh, Spec spec) {
  for (std::vector<int>& axes : spec) {
    std::erase_if(axes, [&](int axis) { return mesh.axes[axis].size == 1; });
  }
  return spec;
}

Spec HintOf(const Mesh& mesh, const Node* node) {
  return WithoutAxesOfOne(mesh, graph::Decode(ir::IntsOf(node), node->shape().size()));
}

int64_t AxisOf(const Node* node) {
  return node->op() == Op::kScatterElements ? node->attr<ir::ScatterAttr>().axis
                                            : node->attr<ir::IntAttr>().value;
}

// Returns the spec of an index, which may have size 1 where x has any size.
Spec IndexSpec(const Node* index, Spec spec) {
  for (size_t dim = 0; dim < spec.size(); ++dim) {
    if (index->shape()[dim] == 1) spec[dim].clear();
  }
  return spec;
}

// The priority of an operand where two of them want one axis of the mesh.
struct Rank {
  enum Kind { kSource, kState, kData, kHint };
  int kind = kSource;
  int64_t elements = 0;  // before expansion
};

class Propagation {
 public:
  explicit Propagation(const graph::Graph& graph)
      : graph_(graph), is_state_(graph.inputs.size(), false) {
    layouts_.mesh = graph.sharding->mesh;
    for (const graph::Update& update : graph.updates) is_state_[update.input] = true;
  }

  Layouts Run() && {
    for (const Spec& spec : graph_.sharding->inputs) inputs_.push_back(Normal(spec));
    for (const Spec& spec : graph_.sharding->outputs) layouts_.outputs.push_back(Normal(spec));
    for (const graph::Update& update : graph_.updates) {
      layouts_.updates.push_back(inputs_[update.input]);
    }
    layouts_.order = ir::TopologicalOrder(graph::Roots(graph_));
    Wish();
    for (const Node* node : layouts_.order) Choose(node);
    return std::move(layouts_);
  }

 private:
  Spec Normal(const Spec& spec) const { return WithoutAxesOfOne(layouts_.mesh, spec); }

  void AddWish(const Node* node, const Spec& spec) {
    if (graph::IsWhole(spec)) return;
    Spec& wish = wishes_.try_emplace(node, Spec(node->shape().size())).first->second;
    Join(spec, &wish);
  }

  void Wish() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      AddWish(graph_.outputs[i], layouts_.outputs[i]);
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      AddWish(graph_.updates[i].value, layouts_.updates[i]);
    }
    for (auto it = layouts_.order.rbegin(); it != layouts_.order.rend(); ++it) {
      const Node* node = *it;
      const auto found = wishes_.find(node);
      const Spec wish = found != wishes_.end() ? found->second : Spec(node->shape().size());
      PassOn(node, wish);
    }
  }

  void PassOn(const Node* node, const Spec& wish) {
    switch (RuleOf(node->op())) {
      case RuleKind::kElementwise:
        for (const Node* operand : node->operands()) AddWish(operand, wish);
        return;
      case RuleKind::kReduce:
        return AddWish(node->operand(0), wish);
      case RuleKind::kMovement:
        return AddWish(node->operand(0), Pull(layouts_.mesh, node, wish));
      case RuleKind::kShard:
        return AddWish(node->operand(0), HintOf(layouts_.mesh, node));
      case RuleKind::kGather:
      case RuleKind::kScatter:
        return AddWish(node->operand(0), WithoutDim(wish, AxisOf(node)));
      default:
        return;
    }
  }

  void Choose(const Node* node) {
    Layout layout;
    layout.spec.resize(node->shape().size());
    Rank rank = RankOf(node);
    switch (RuleOf(node->op())) {
      case RuleKind::kInput:
        layout.spec = inputs_[node->attr<ir::InputAttr>().index];
        break;
      case RuleKind::kElementwise:
        layout.spec = Joined(node->operands());
        break;
      case RuleKind::kReduce:
        ChooseReduce(node, &layout);
        break;
      case RuleKind::kMovement:
        layout.spec = Push(layouts_.mesh, node, SpecOf(node->operand(0)));
        break;
      case RuleKind::kGather:
        layout.spec = GatherSpec(node);
        break;
      case RuleKind::kScatter:
        ChooseScatter(node, &layout);
        break;
      case RuleKind::kShard:
        layout.spec = HintOf(layouts_.mesh, node);
        rank.kind = Rank::kHint;
        break;
      default:
        break;
    }
    layout.is_source = rank.kind == Rank::kSource;
    ranks_[node] = rank;
    layouts_.of[node] = std::move(layout);
  }

  const Spec& SpecOf(const Node* node) const { return layouts_.of.at(node).spec; }

  Rank RankOf(const Node* node) const {
    Rank rank{Rank::kSource, ir::NumElements(node->shape())};
    if (node->op() == Op::kInput) {
      rank.kind = is_state_[node->attr<ir::InputAttr>().index] ? Rank::kState : Rank::kData;
    }
    const bool moves = RuleOf(node->op()) == RuleKind::kMovement;
    for (const Node* operand : node->operands()) {
      const Rank& below = ranks_.at(operand);
      // Only movements keep a hinted value as it is; other ops compute a new one.
      const int kind = below.kind == Rank::kHint && !moves ? Rank::kData : below.kind;
      rank.kind = std::max<int>(rank.kind, kind);
      if (moves) rank.elements = std::min(rank.elements, below.elements);
    }
    return rank;
  }

  // Merges the splits of all operands. Requires: they have the same shape.
  Spec Joined(absl::Span<const Node* const> operands) const {
    std::vector<const Node*> ordered(operands.begin(), operands.end());
    std::stable_sort(ordered.begin(), ordered.end(), [this](const Node* a, const Node* b) {
      const Rank& first = ranks_.at(a);
      const Rank& second = ranks_.at(b);
      return std::pair(first.kind, first.elements) > std::pair(second.kind, second.elements);
    });
    Spec spec(operands[0]->shape().size());
    for (const Node* operand : ordered) Join(SpecOf(operand), &spec);
    return spec;
  }

  void ChooseReduce(const Node* node, Layout* layout) const {
    layout->spec = SpecOf(node->operand(0));
    for (const int64_t axis : ir::IntsOf(node)) {
      std::vector<int>& axes = layout->spec[axis];
      layout->partial.insert(layout->partial.end(), axes.begin(), axes.end());
      axes.clear();
    }
    ChooseScatterDim(node, layout);
  }

  // Chooses the dimension wanted split by axes over which the results are partial.
  void ChooseScatterDim(const Node* node, Layout* layout) const {
    const auto wish = wishes_.find(node);
    if (layout->partial.empty() || wish == wishes_.end()) return;
    for (size_t dim = 0; dim < layout->spec.size(); ++dim) {
      std::vector<int>& axes = layout->spec[dim];
      const std::vector<int>& wanted = wish->second[dim];
      if (wanted.size() <= axes.size() || !std::equal(axes.begin(), axes.end(), wanted.begin())) {
        continue;
      }
      for (size_t i = axes.size(); i < wanted.size(); ++i) {
        const auto found = std::find(layout->partial.begin(), layout->partial.end(), wanted[i]);
        if (found == layout->partial.end()) break;
        layout->scatter_axes.push_back(wanted[i]);
      }
      if (layout->scatter_axes.empty()) continue;
      layout->scatter_dim = static_cast<int>(dim);
      axes.insert(axes.end(), layout->scatter_axes.begin(), layout->scatter_axes.end());
      return;
    }
  }

  Spec GatherSpec(const Node* node) const {
    Spec spec = WithoutDim(SpecOf(node->operand(0)), AxisOf(node));
    Join(SpecOf(node->operand(1)), &spec);
    return spec;
  }

  void ChooseScatter(const Node* node, Layout* layout) const {
    const int64_t axis = AxisOf(node);
    layout->spec = WithoutDim(Joined({node->operand(0)}), axis);
    const Spec& values = SpecOf(node->operand(2));
    Join(WithoutDim(values, axis), &layout->spec);
    if (node->attr<ir::ScatterAttr>().mode != ir::ScatterMode::kAdd) return;
    for (const int mesh_axis : values[axis]) {
      if (IsSplitBy(layout->spec, mesh_axis)) break;
      layout->partial.push_back(mesh_axis);
    }
    ChooseScatterDim(node, layout);
  }

  const graph::Graph& graph_;
  std::vector<bool> is_state_;  // by input
  std::vector<Spec> inputs_;
  absl::flat_hash_map<const Node*, Spec> wishes_;
  absl::flat_hash_map<const Node*, Rank> ranks_;
  Layouts layouts_;
};

// Returns the layout before partial results are combined.
Spec Unscattered(const Layout& layout) {
  Spec spec = layout.spec;
  if (layout.scatter_dim >= 0) {
    std::vector<int>& axes = spec[layout.scatter_dim];
    axes.resize(axes.size() - layout.scatter_axes.size());
  }
  return spec;
}

// Returns the operand's layout, from which the reduction's was derived.
Spec ReducedSpec(const Layouts& layouts, const Node* node) {
  return layouts.of.at(node->operand(0)).spec;
}

std::vector<Spec> ScatterSpecs(const Layout& layout, const Node* node) {
  const Spec x = Unscattered(layout);
  Spec values = x;
  values[AxisOf(node)] = layout.partial;
  return {x, IndexSpec(node->operand(1), values), values};
}

}  // namespace

Layouts Propagate(const graph::Graph& graph) { return Propagation(graph).Run(); }

bool CanLie(const Layouts& layouts, const Node* node, const Spec& spec) {
  switch (RuleOf(node->op())) {
    case RuleKind::kConst:
    case RuleKind::kIota:
      return true;
    case RuleKind::kElementwise:
      return layouts.of.at(node).is_source;
    case RuleKind::kMovement:
      // An expand to a part repeats its operand fewer times.
      return node->op() == Op::kExpand ||
             Push(layouts.mesh, node, Pull(layouts.mesh, node, spec)) == spec;
    default:
      return false;
  }
}

std::vector<Spec> OperandSpecs(const Layouts& layouts, const Node* node, const Spec& spec) {
  switch (RuleOf(node->op())) {
    case RuleKind::kMovement:
      return {Pull(layouts.mesh, node, spec)};
    case RuleKind::kReduce:
      return {ReducedSpec(layouts, node)};
    case RuleKind::kGather: {
      return {WithoutDim(spec, AxisOf(node)), IndexSpec(node->operand(1), spec)};
    }
    case RuleKind::kScatter:
      return ScatterSpecs(layouts.of.at(node), node);
    default:
      return std::vector<Spec>(node->operands().size(), spec);
  }
}

}  // namespace kiln::shard
