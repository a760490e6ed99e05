#include "compiler/shard/padding.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/text.h"
#include "compiler/ir/walk.h"
#include "compiler/shard/fit.h"
#include "compiler/shard/mask.h"
#include "compiler/shard/padded_shape.h"
#include "compiler/shard/padding_wishes.h"
#include "compiler/shard/rules.h"

namespace kiln::shard {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

// A spec enlarges a tensor by at most the number of devices. Operands padded in different
// dimensions multiply that, which is too much. Doubles, since integers might overflow.
bool IsTooMuch(const Shape& padded, const Shape& exact) {
  double times = 1;
  for (size_t dim = 0; dim < exact.size(); ++dim) {
    if (exact[dim] > 0) times *= static_cast<double>(padded[dim]) / static_cast<double>(exact[dim]);
  }
  return times > graph::kMeshDevicesMax;
}

class ShardPadder {
 public:
  explicit ShardPadder(const graph::Graph& graph)
      : graph_(graph),
        order_(ir::TopologicalOrder(graph::Roots(graph))),
        wishes_(PaddingWishes(graph, order_)),
        builder_(*graph.context),
        fitter_(builder_),
        masker_(builder_),
        sharding_(std::make_shared<graph::Sharding>(*graph.sharding)) {}

  graph::Graph Run() && {
    graph::Graph result = graph_;
    for (size_t i = 0; i < graph_.inputs.size(); ++i) {
      graph::Input& input = result.inputs[i];
      input.shape = PaddedShape(sharding_->mesh, sharding_->inputs[i], input.shape);
      Note(StrCat("input ", i), input.dtype, graph_.inputs[i].shape, input.shape);
    }
    result.sources.clear();
    for (const Node* node : order_) {
      became_[node] = Make(node);
      const auto source = graph_.sources.find(node);
      if (source != graph_.sources.end()) {
        result.sources.try_emplace(became_[node], source->second);
      }
    }
    for (size_t i = 0; i < graph_.outputs.size(); ++i) {
      result.outputs[i] = Result(graph_.outputs[i], sharding_->outputs[i], StrCat("output ", i));
    }
    for (graph::Update& update : result.updates) {
      update.value = Result(update.value, sharding_->inputs[update.input], "");
    }
    result.sharding = std::move(sharding_);
    return result;
  }

 private:
  void Note(std::string_view what, DType dtype, const Shape& from, const Shape& to) {
    if (from == to) return;
    StrAppend(&sharding_->padding, what, " ", ir::TypeText(dtype, from), " padded to ",
              ir::TypeText(dtype, to), "\n");
  }

  const Node* Result(const Node* node, const graph::Spec& spec, std::string_view name) {
    const Shape shape = PaddedShape(sharding_->mesh, spec, node->shape());
    if (!name.empty()) Note(name, node->dtype(), node->shape(), shape);
    return fitter_.Fit(Became(node), shape);
  }

  const Node* Became(const Node* node) const { return became_.at(node); }
  const Shape& SizesOf(const Node* node) const { return Became(node)->shape(); }

  // Returns an operand cut to `shape`, for an op that does not take it padded.
  const Node* Cut(const Node* node, int operand, const Shape& shape) {
    const Node* x = Became(node->operand(operand));
    if (x->shape() == shape) return x;
    const auto source = graph_.sources.find(node);
    const std::string at = source == graph_.sources.end() ? "" : StrCat(" at ", source->second);
    StrAppend(&sharding_->padding, ir::Name(node->op()), at, " takes ",
              ir::TypeText(x->dtype(), x->shape()), " as ", ir::TypeText(x->dtype(), shape), "\n");
    return fitter_.Fit(x, shape);
  }

  const Shape* WishOf(const Node* node) const {
    const auto found = wishes_.find(node);
    return found == wishes_.end() ? nullptr : &found->second;
  }

  // Adds the wish along dimensions that are not padded yet.
  void AddWish(const Node* node, Shape* shape) const {
    const Shape* wish = WishOf(node);
    for (size_t dim = 0; wish != nullptr && dim < shape->size(); ++dim) {
      if ((*shape)[dim] == node->shape()[dim]) (*shape)[dim] = (*wish)[dim];
    }
  }

  const Node* Made(const Node* node, const Shape& shape, std::vector<const Node*> operands,
                   ir::Attribute attribute) {
    return builder_.context().Get(node->op(), node->dtype(), shape, std::move(operands),
                                  std::move(attribute));
  }

  const Node* Make(const Node* node) {
    const Node* made = MakePadded(node);
    return IsTooMuch(made->shape(), node->shape()) ? MakeExact(node) : made;
  }

  // Builds the node unpadded, from operands cut to size.
  const Node* MakeExact(const Node* node) {
    std::vector<const Node*> operands;
    for (size_t i = 0; i < node->operands().size(); ++i) {
      operands.push_back(Cut(node, static_cast<int>(i), node->operand(i)->shape()));
    }
    return Made(node, node->shape(), std::move(operands), node->attribute());
  }

  const Node* MakePadded(const Node* node) {
    switch (RuleOf(node->op())) {
      case RuleKind::kInput: {
        const int64_t index = node->attr<ir::InputAttr>().index;
        return Made(node, PaddedShape(sharding_->mesh, sharding_->inputs[index], node->shape()), {},
                    node->attribute());
      }
      case RuleKind::kElementwise:
        return MakeElementwise(node);
      case RuleKind::kReduce:
        return MakeReduce(node);
      case RuleKind::kMovement:
        return MakeMovement(node);
      case RuleKind::kGather:
        return MakeGather(node);
      case RuleKind::kScatter:
        return MakeScatter(node);
      case RuleKind::kShard:
        return MakeShard(node);
      default:
        return node;
    }
  }

  const Node* MakeElementwise(const Node* node) {
    Shape shape = node->shape();
    for (const Node* operand : node->operands()) {
      for (size_t dim = 0; dim < shape.size(); ++dim) {
        shape[dim] = std::max(shape[dim], SizesOf(operand)[dim]);
      }
    }
    AddWish(node, &shape);
    if (IsTooMuch(shape, node->shape())) return MakeExact(node);
    std::vector<const Node*> operands;
    for (const Node* operand : node->operands()) {
      operands.push_back(fitter_.Fit(Became(operand), shape));
    }
    return Made(node, shape, std::move(operands), node->attribute());
  }

  // Keeps the operand's padding where its parts are equal.
  const Node* MakeShard(const Node* node) {
    const graph::Spec spec = graph::Decode(ir::IntsOf(node), node->shape().size());
    const Shape padded = PaddedShape(sharding_->mesh, spec, node->shape());
    Shape shape = SizesOf(node->operand(0));
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      if (shape[dim] % graph::Parts(sharding_->mesh, spec, dim) != 0) shape[dim] = padded[dim];
    }
    if (IsTooMuch(shape, node->shape())) shape = padded;
    Note("hint", node->dtype(), node->shape(), shape);
    return Made(node, shape, {fitter_.Fit(Became(node->operand(0)), shape)}, node->attribute());
  }

  const Node* MakeReduce(const Node* node) {
    const Shape& exact = node->operand(0)->shape();
    const Node* x = Became(node->operand(0));
    Shape shape = x->shape();
    for (const int64_t axis : ir::IntsOf(node)) {
      if (x->shape()[axis] != exact[axis]) {
        x = masker_.Identity(x, axis, exact[axis], node->op());
      }
      shape[axis] = 1;
    }
    return Made(node, shape, {x}, node->attribute());
  }

  const Node* MakeMovement(const Node* node) {
    const std::vector<int64_t> none;
    const auto& values =
        node->op() == Op::kReshape || node->op() == Op::kExpand ? none : ir::IntsOf(node);
    switch (node->op()) {
      case Op::kReshape:
        return MakeReshape(node);
      case Op::kPermute:
        return builder_.Permute(Became(node->operand(0)), values);
      case Op::kExpand:
      case Op::kPad:
      case Op::kShrink:
        return MakeAlongSome(node);
      case Op::kFlip: {
        const Node* x = Cut(node, 0, ExactIn(values, node->shape(), SizesOf(node->operand(0))));
        return Made(node, x->shape(), {x}, node->attribute());
      }
      default:
        return MakeWindow(node, values[0]);
    }
  }

  const Node* MakeReshape(const Node* node) {
    const Node* operand = node->operand(0);
    const auto shape = PaddedReshape(operand->shape(), SizesOf(operand), node->shape());
    if (shape.has_value()) return builder_.Reshape(Became(operand), *shape);
    return builder_.Reshape(Cut(node, 0, operand->shape()), node->shape());
  }

  // For ops whose result has its operand's elements along each dimension of unchanged size.
  const Node* MakeAlongSome(const Node* node) {
    const Shape& exact = node->operand(0)->shape();
    Shape sizes = SizesOf(node->operand(0));
    Shape shape = node->shape();
    for (size_t dim = 0; dim < shape.size(); ++dim) {
      (shape[dim] == exact[dim] ? shape : sizes)[dim] =
          shape[dim] == exact[dim] ? sizes[dim] : exact[dim];
    }
    const Node* x = Cut(node, 0, sizes);
    if (node->op() == Op::kExpand) return builder_.Expand(x, shape);
    std::vector<int64_t> values = ir::IntsOf(node);
    for (size_t dim = 0; node->op() == Op::kShrink && dim < shape.size(); ++dim) {
      if (node->shape()[dim] == exact[dim]) values[2 * dim + 1] = shape[dim];
    }
    return Made(node, shape, {x}, ir::IntsAttr{std::move(values)});
  }

  // Takes the axis that windows slide along, and the windows, unpadded.
  const Node* MakeWindow(const Node* node, int64_t axis) {
    const Shape& exact = node->operand(0)->shape();
    std::vector<int64_t> whole = {axis};
    if (node->op() == Op::kUnwindow) whole.push_back(static_cast<int64_t>(exact.size()) - 1);
    const Node* x = Cut(node, 0, ExactIn(whole, exact, SizesOf(node->operand(0))));
    Shape shape = node->shape();
    for (size_t dim = 0; dim < exact.size(); ++dim) {
      if (std::find(whole.begin(), whole.end(), dim) == whole.end()) shape[dim] = x->shape()[dim];
    }
    return Made(node, shape, {x}, node->attribute());
  }

  // Returns the sizes that all operands of a gather or scatter have, except along the axis.
  Shape Common(const Node* node, int64_t axis) const {
    const Shape& exact = node->operand(0)->shape();
    Shape common = SizesOf(node->operand(0));
    for (const Node* operand : node->operands()) {
      for (size_t dim = 0; dim < exact.size(); ++dim) {
        const bool is_like_x = operand->shape()[dim] == exact[dim];
        if (is_like_x) common[dim] = std::max(common[dim], SizesOf(operand)[dim]);
      }
    }
    common[axis] = SizesOf(node->operand(0))[axis];
    return common;
  }

  // An index may have size 1 where x has any size.
  static Shape IndexSizes(const Node* index, const Shape& x, const Shape& common, int64_t axis,
                          int64_t along) {
    Shape sizes = common;
    for (size_t dim = 0; dim < sizes.size(); ++dim) {
      if (index->shape()[dim] != x[dim]) sizes[dim] = index->shape()[dim];
    }
    sizes[axis] = along;
    return sizes;
  }

  // Takes x unpadded along the axis, so that indices past its end stay out of range.
  const Node* MakeGather(const Node* node) {
    const int64_t axis = node->attr<ir::IntAttr>().value;
    const Shape& exact = node->operand(0)->shape();
    const Node* index = node->operand(1);
    Shape shape = Common(node, axis);
    if (IsTooMuch(shape, exact)) return MakeExact(node);
    shape[axis] = exact[axis];
    const Node* x = Cut(node, 0, ExactSide(node, shape, axis));
    const int64_t along = SizesOf(index)[axis];
    const Node* fitted = fitter_.Fit(Became(index), IndexSizes(index, exact, shape, axis, along));
    shape[axis] = along;
    return Made(node, shape, {fitter_.Fit(x, WithSize(shape, axis, exact[axis])), fitted},
                node->attribute());
  }

  static Shape WithSize(Shape shape, int64_t axis, int64_t size) {
    shape[axis] = size;
    return shape;
  }
  // Cut reports only the change along the axis; Fit then resizes the other dimensions silently.
  Shape ExactSide(const Node* node, const Shape& shape, int64_t axis) const {
    return WithSize(SizesOf(node->operand(0)), axis, shape[axis]);
  }

  // Positions past the end become out of range, so they change nothing.
  const Node* MakeScatter(const Node* node) {
    const int64_t axis = node->attr<ir::ScatterAttr>().axis;
    const Node* index = node->operand(1);
    Shape shape = Common(node, axis);
    AddWish(node, &shape);
    if (IsTooMuch(shape, node->shape())) return MakeExact(node);
    const int64_t exact = index->shape()[axis];
    int64_t along = std::max(SizesOf(index)[axis], SizesOf(node->operand(2))[axis]);
    if (!ir::IsSigned(index->dtype())) along = exact;
    const Node* fitted = fitter_.Fit(
        Became(index), IndexSizes(index, node->operand(0)->shape(), shape, axis, along));
    if (along != exact) {
      fitted = masker_.Replace(fitted, axis, exact, builder_.ConstInt(index->dtype(), -1));
    }
    const Node* values = fitter_.Fit(Became(node->operand(2)), WithSize(shape, axis, along));
    return Made(node, shape, {fitter_.Fit(Became(node->operand(0)), shape), fitted, values},
                node->attribute());
  }

  const graph::Graph& graph_;
  const std::vector<const Node*> order_;
  const absl::flat_hash_map<const Node*, Shape> wishes_;
  ops::Builder builder_;
  Fitter fitter_;
  Masker masker_;
  std::shared_ptr<graph::Sharding> sharding_;
  absl::flat_hash_map<const Node*, const Node*> became_;
};

}  // namespace

bool ComesOutEven(const graph::Graph& graph) {
  const graph::Sharding& sharding = *graph.sharding;
  const auto is_even = [&](const graph::Spec& spec, const Shape& shape) {
    return PaddedShape(sharding.mesh, spec, shape) == shape;
  };
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (!is_even(sharding.inputs[i], graph.inputs[i].shape)) return false;
  }
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (!is_even(sharding.outputs[i], graph.outputs[i]->shape())) return false;
  }
  const std::vector<const Node*> order = ir::TopologicalOrder(graph::Roots(graph));
  return std::all_of(order.begin(), order.end(), [&](const Node* node) {
    return node->op() != Op::kShard ||
           is_even(graph::Decode(ir::IntsOf(node), node->shape().size()), node->shape());
  });
}

graph::Graph PadShards(const graph::Graph& graph) {
  if (graph.sharding == nullptr || ComesOutEven(graph)) return graph;
  return ShardPadder(graph).Run();
}

}  // namespace kiln::shard
