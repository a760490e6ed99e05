#include "compiler/shard/localize.h"

#include <algorithm>
#include <utility>

#include "absl/types/span.h"
#include "compiler/graph/splat.h"
#include "compiler/graph/verify.h"
#include "compiler/shard/reshard.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// A value in one layout that its users want.
struct Way {
  Spec spec;
  const Node* local = nullptr;
};

Op CombinerOf(Op reduction) {
  if (reduction == Op::kReduceProd) return Op::kMul;
  return reduction == Op::kReduceMax ? Op::kMax : Op::kAdd;
}

class Localizer {
 public:
  Localizer(const graph::Graph& graph, const Layouts& layouts)
      : graph_(graph),
        layouts_(layouts),
        builder_(*graph.context),
        resharder_(layouts.mesh, builder_, Place(graph, layouts, builder_),
                   static_cast<int64_t>(graph.inputs.size()) + 1, &local_.collectives) {}

  LocalGraph Run() && {
    local_.context = graph_.context;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      const graph::Input& input = graph_.inputs[i];
      local_.inputs.push_back(
          {input.dtype, graph::LocalShape(layouts_.mesh, graph_.sharding->inputs[i], input.shape)});
    }
    local_.inputs.push_back({DType::kInt64, PlaceShape(layouts_)});
    WantAll();
    for (const Node* node : layouts_.order) MakeAll(node);
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      local_.outputs.push_back(WayOf(graph_.outputs[i], layouts_.outputs[i]).local);
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      local_.updates.push_back(WayOf(graph_.updates[i].value, layouts_.updates[i]).local);
    }
    return std::move(local_);
  }

 private:
  static ir::Shape PlaceShape(const Layouts& layouts) {
    return {static_cast<int64_t>(layouts.mesh.axes.size())};
  }
  static const Node* Place(const graph::Graph& graph, const Layouts& layouts,
                           ops::Builder& builder) {
    return builder.Input(static_cast<int64_t>(graph.inputs.size()), DType::kInt64,
                         PlaceShape(layouts));
  }

  Way& WayOf(const Node* node, const Spec& spec) {
    std::vector<Way>& ways = ways_[node];
    const auto found =
        std::find_if(ways.begin(), ways.end(), [&](const Way& way) { return way.spec == spec; });
    if (found != ways.end()) return *found;
    ways.push_back({spec});
    return ways.back();
  }

  // Returns whether a value wanted in this layout is computed in it, instead of resharded.
  bool IsComputed(const Node* node, const Spec& spec) const {
    return spec == layouts_.of.at(node).spec || CanLie(layouts_, node, spec);
  }

  // Walks from users to operands and records the layouts in which each value is wanted.
  void WantAll() {
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      WayOf(graph_.outputs[i], layouts_.outputs[i]);
    }
    for (size_t i = 0; i < graph_.updates.size(); ++i) {
      WayOf(graph_.updates[i].value, layouts_.updates[i]);
    }
    for (auto it = layouts_.order.rbegin(); it != layouts_.order.rend(); ++it) {
      const Node* node = *it;
      const std::vector<Way> wanted = ways_[node];
      for (const Way& way : wanted) {
        if (IsComputed(node, way.spec)) {
          WantOperands(node, way.spec);
          continue;
        }
        const bool is_new = !IsWanted(node, layouts_.of.at(node).spec);
        WayOf(node, layouts_.of.at(node).spec);
        if (is_new) WantOperands(node, layouts_.of.at(node).spec);
      }
    }
  }

  bool IsWanted(const Node* node, const Spec& spec) const {
    const std::vector<Way>& ways = ways_.at(node);
    return std::any_of(ways.begin(), ways.end(), [&](const Way& way) { return way.spec == spec; });
  }

  void WantOperands(const Node* node, const Spec& spec) {
    const std::vector<Spec> specs = OperandSpecs(layouts_, node, spec);
    for (size_t i = 0; i < specs.size(); ++i) WayOf(node->operand(static_cast<int>(i)), specs[i]);
  }

  void MakeAll(const Node* node) {
    const Spec& own = layouts_.of.at(node).spec;
    std::vector<Way>& ways = ways_.at(node);
    for (Way& way : ways) {
      if (IsComputed(node, way.spec)) way.local = Make(node, way.spec);
    }
    const auto source = graph_.sources.find(node);
    for (Way& way : ways) {
      if (way.local == nullptr)
        way.local = resharder_.Reshard(WayOf(node, own).local, own, way.spec);
      KILN_CHECK(way.local->shape() == LocalShape(node, way.spec)) << "node " << node->id();
      if (source != graph_.sources.end()) local_.sources.try_emplace(way.local, source->second);
    }
  }

  ir::Shape LocalShape(const Node* node, const Spec& spec) const {
    return graph::LocalShape(layouts_.mesh, spec, node->shape());
  }

  const Node* Make(const Node* node, const Spec& spec) {
    std::vector<const Node*> operands;
    const std::vector<Spec> specs = OperandSpecs(layouts_, node, spec);
    for (size_t i = 0; i < specs.size(); ++i) {
      operands.push_back(WayOf(node->operand(static_cast<int>(i)), specs[i]).local);
    }
    switch (RuleOf(node->op())) {
      case RuleKind::kIota:
        return MakeIota(node, spec);
      case RuleKind::kReduce:
        return MakeReduce(node, operands[0]);
      case RuleKind::kScatter:
        return MakeScatter(node, std::move(operands));
      case RuleKind::kShard:
        return operands[0];
      default:
        return builder_.context().Get(node->op(), node->dtype(), LocalShape(node, spec),
                                      std::move(operands), LocalAttribute(node, spec));
    }
  }

  // Only a shrink has an attribute (its bounds) that differs between the whole and a part.
  ir::Attribute LocalAttribute(const Node* node, const Spec& spec) const {
    if (node->op() != Op::kShrink) return node->attribute();
    std::vector<int64_t> bounds = ir::IntsOf(node);
    const ir::Shape shape = LocalShape(node, spec);
    for (size_t dim = 0; dim < spec.size(); ++dim) {
      if (!spec[dim].empty()) bounds[2 * dim + 1] = shape[dim];
    }
    return ir::IntsAttr{std::move(bounds)};
  }

  const Node* MakeIota(const Node* node, const Spec& spec) {
    const int64_t axis = node->attr<ir::IntAttr>().value;
    const ir::Shape shape = LocalShape(node, spec);
    if (spec[axis].empty()) return builder_.Iota(node->dtype(), shape, axis);
    const Node* length = builder_.ConstInt(DType::kInt64, shape[axis]);
    const Node* begin = builder_.Mul(resharder_.Number(spec[axis]), length);
    return builder_.Cast(builder_.Add(builder_.Iota(DType::kInt64, shape, axis), begin),
                         node->dtype());
  }

  const Node* MakeReduce(const Node* node, const Node* operand) {
    ir::Shape shape = operand->shape();
    for (const int64_t axis : ir::IntsOf(node)) shape[axis] = 1;
    const Node* partial =
        builder_.context().Get(node->op(), node->dtype(), shape, {operand}, node->attribute());
    return resharder_.Finish(partial, CombinerOf(node->op()), layouts_.of.at(node));
  }

  const Node* MakeScatter(const Node* node, std::vector<const Node*> operands) {
    const Layout& layout = layouts_.of.at(node);
    const auto [axis, mode] = node->attr<ir::ScatterAttr>();
    if (layout.partial.empty()) {
      return builder_.ScatterElements(operands[0], operands[1], operands[2], axis, mode);
    }
    // Each device scatters its positions into zeros; the original contents are added once.
    const Node* zeros =
        graph::MakeSplat(builder_.context(), node->dtype(), operands[0]->shape(), 0);
    const Node* partial = builder_.ScatterElements(zeros, operands[1], operands[2], axis, mode);
    const Node* sum = resharder_.Finish(partial, Op::kAdd, layout);
    if (graph::IsSplat(node->operand(0), 0)) return sum;
    Spec before = layout.spec;
    if (layout.scatter_dim >= 0) {
      std::vector<int>& axes = before[layout.scatter_dim];
      axes.resize(axes.size() - layout.scatter_axes.size());
    }
    return builder_.Add(resharder_.Reshard(operands[0], before, layout.spec), sum);
  }

  const graph::Graph& graph_;
  const Layouts& layouts_;
  ops::Builder builder_;
  LocalGraph local_;
  Resharder resharder_;
  absl::flat_hash_map<const Node*, std::vector<Way>> ways_;
};

}  // namespace

LocalGraph Localize(const graph::Graph& graph, const Layouts& layouts) {
  return Localizer(graph, layouts).Run();
}

}  // namespace kiln::shard
