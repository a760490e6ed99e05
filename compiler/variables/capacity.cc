#include "compiler/variables/capacity.h"

#include <memory>
#include <optional>
#include <utility>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/variables/extents.h"

namespace kiln::variables {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using NodeOr = absl::StatusOr<const Node*>;

bool Varies(Dims dims) {
  for (const Affine& size : dims) {
    if (!size.is_fixed()) return true;
  }
  return false;
}

class Lowerer {
 public:
  explicit Lowerer(const GeneralGraph& general)
      : general_(general), builder_(*context_), extents_(builder_, general) {}

  absl::StatusOr<graph::Graph> Run() {
    for (const GeneralNode& node : general_.nodes) {
      // Checked before anything multiplies the sizes.
      if (absl::Status fits = ops::CheckShape(extents_.Capacity(node.shape)); !fits.ok()) {
        return fits;
      }
      const NodeOr made = Make(node);
      if (!made.ok()) return made.status();
      if (!builder_.status().ok()) return builder_.status();
      made_.push_back(*made);
    }
    graph::Graph graph;
    graph.context = context_;
    graph.float32_matmul_precision = general_.float32_matmul_precision;
    for (const GeneralGraph::Input& input : general_.inputs) {
      // An input that nothing reads has no node.
      if (absl::Status fits = ops::CheckShape(extents_.Capacity(input.shape)); !fits.ok()) {
        return fits;
      }
      graph.inputs.push_back({input.dtype, PackedShape(input.shape)});
    }
    graph.inputs.push_back({DType::kInt64, {static_cast<int64_t>(general_.variables.size())}});
    for (const int output : general_.outputs) graph.outputs.push_back(Packed(output));
    for (const GeneralGraph::Update& update : general_.updates) {
      graph.updates.push_back({update.input, Packed(update.value)});
    }
    if (!builder_.status().ok()) return builder_.status();
    return graph;
  }

 private:
  ir::Shape PackedShape(Dims dims) const {
    const ir::Shape shape = extents_.Capacity(dims);
    return Varies(dims) ? ir::Shape{ir::NumElements(shape)} : shape;
  }
  const Node* Packed(int index) {
    const std::vector<Affine>& dims = general_.nodes[index].shape;
    return Varies(dims) ? extents_.ToPacked(made_[index], dims) : made_[index];
  }

  const Node* Operand(const GeneralNode& node, int i) const { return made_[node.operands[i]]; }
  Dims DimsOf(const GeneralNode& node, int i) const {
    return general_.nodes[node.operands[i]].shape;
  }
  const Node* Zero(DType dtype) { return builder_.Const(dtype, 0); }

  // Returns the numbers of an IntsAttr.
  static std::vector<Affine> Ints(const GeneralNode& node) {
    if (const auto* ints = std::get_if<std::vector<Affine>>(&node.varying)) return *ints;
    std::vector<Affine> ints;
    for (const int64_t number : std::get<ir::IntsAttr>(node.attribute).values) {
      ints.push_back(Fixed(number));
    }
    return ints;
  }
  static absl::Status CannotVary(const GeneralNode& node, std::string_view what) {
    return absl::UnimplementedError(
        StrCat("an op \"", ir::Name(node.op), "\" has ", what,
               " that depend on the variables, so one program cannot serve all values"));
  }

  NodeOr Make(const GeneralNode& node) {
    switch (node.op) {
      case Op::kConst:
        return MakeConst(node);
      case Op::kInput:
        return MakeInput(node);
      case Op::kIota:
        return builder_.Iota(node.dtype, extents_.Capacity(node.shape),
                             std::get<ir::IntAttr>(node.attribute).value);
      case Op::kReduceSum:
      case Op::kReduceProd:
      case Op::kReduceMax:
        return MakeReduce(node);
      case Op::kReshape:
        return extents_.Reshaped(Operand(node, 0), DimsOf(node, 0), node.shape);
      case Op::kExpand:
        return builder_.Expand(Operand(node, 0), extents_.Capacity(node.shape));
      case Op::kPermute:
        return builder_.Permute(Operand(node, 0), std::get<ir::IntsAttr>(node.attribute).values);
      case Op::kPad:
        return MakePad(node);
      case Op::kShrink:
        return MakeShrink(node);
      case Op::kFlip:
        return MakeFlip(node);
      case Op::kWindow:
        return MakeWindow(node);
      case Op::kUnwindow:
        return MakeUnwindow(node);
      case Op::kGatherElements:
        return MakeGatherElements(node);
      case Op::kScatterElements:
        return MakeScatterElements(node);
      default:
        return MakeElementwise(node);
    }
  }

  NodeOr MakeConst(const GeneralNode& node) {
    if (const auto* formula = std::get_if<Formula>(&node.varying)) {
      return extents_.Constant(*formula, node.dtype);
    }
    return context_->Get(Op::kConst, node.dtype, {}, {}, node.attribute);
  }

  NodeOr MakeInput(const GeneralNode& node) {
    const int64_t index = std::get<ir::InputAttr>(node.attribute).index;
    const Node* input = builder_.Input(index, node.dtype, PackedShape(node.shape));
    return Varies(node.shape) ? extents_.FromPacked(input, node.shape) : input;
  }

  // Elements beyond the true size are arbitrary, including infinities and NaNs, so in a sum of
  // products both factors are masked. The form stays a sum of products, which is recognised as a
  // contraction.
  NodeOr MakeReduce(const GeneralNode& node) {
    const std::vector<int64_t>& axes = std::get<ir::IntsAttr>(node.attribute).values;
    const Dims dims = DimsOf(node, 0);
    const Node* neutral = Neutral(builder_, node.op, node.dtype);
    const GeneralNode& operand = general_.nodes[node.operands[0]];
    const Node* masked = nullptr;
    if (node.op == Op::kReduceSum && operand.op == Op::kMul) {
      masked = builder_.Mul(extents_.Masked(Operand(operand, 0), dims, axes, neutral),
                            extents_.Masked(Operand(operand, 1), dims, axes, neutral));
    } else {
      masked = extents_.Masked(Operand(node, 0), dims, axes, neutral);
    }
    return builder_.Reduce(node.op, masked, axes, /*keepdims=*/true);
  }

  NodeOr MakePad(const GeneralNode& node) {
    const std::vector<Affine> padding = Ints(node);
    const Dims dims = DimsOf(node, 0);
    const Node* x = Operand(node, 0);
    for (size_t i = 0; i < dims.size(); ++i) {
      const Affine& before = padding[2 * i];
      if (before == Fixed(0) && node.shape[i] == dims[i]) continue;
      const int64_t axis = static_cast<int64_t>(i);
      const int64_t capacity = extents_.Capacity(node.shape[i]);
      x = extents_.Moved(x, axis, before, capacity);
      if (dims[i].is_fixed()) continue;
      const Node* before_end = builder_.Less(extents_.Index(capacity, i, dims.size()),
                                             extents_.Scalar(AddScaled(dims[i], before, 1)));
      x = builder_.Where(before_end, x, Zero(node.dtype));
    }
    return x;
  }

  NodeOr MakeShrink(const GeneralNode& node) {
    const std::vector<Affine> bounds = Ints(node);
    const Node* x = Operand(node, 0);
    for (size_t i = 0; i < node.shape.size(); ++i) {
      const Affine offset = AddScaled(Affine{}, bounds[2 * i], -1);
      const int64_t capacity = extents_.Capacity(node.shape[i]);
      x = extents_.Moved(x, static_cast<int64_t>(i), offset, capacity);
    }
    return x;
  }

  NodeOr MakeFlip(const GeneralNode& node) {
    const Node* x = Operand(node, 0);
    for (const int64_t axis : std::get<ir::IntsAttr>(node.attribute).values) {
      const Affine& size = node.shape[axis];
      if (size.is_fixed()) {
        x = builder_.Flip(x, {axis});
        continue;
      }
      const Node* last = extents_.Scalar(AddScaled(size, Fixed(1), -1));
      x = builder_.Gather(x, builder_.Sub(last, extents_.Index(extents_.Capacity(size), 0, 1)),
                          axis);
    }
    return x;
  }

  // Returns the number of elements that windows of these capacities cover; nothing if there are too
  // many.
  static std::optional<int64_t> Reach(int64_t positions, int64_t size, int64_t stride,
                                      int64_t dilation) {
    int64_t strides = 0;
    int64_t dilations = 0;
    if (positions < 1 || size < 1 || __builtin_mul_overflow(positions - 1, stride, &strides) ||
        __builtin_mul_overflow(size - 1, dilation, &dilations) || strides > ops::kElementsMax ||
        dilations > ops::kElementsMax) {
      return std::nullopt;
    }
    return strides + dilations + 1;
  }

  NodeOr MakeWindow(const GeneralNode& node) {
    const std::vector<Affine> window = Ints(node);  // axis, size, stride, dilation
    if (!window[2].is_fixed() || !window[3].is_fixed()) return CannotVary(node, "a stride");
    const int64_t axis = window[0].constant;
    const int64_t stride = window[2].constant;
    const int64_t dilation = window[3].constant;
    const int64_t positions = extents_.Capacity(node.shape[axis]);
    const int64_t size = extents_.Capacity(window[1]);
    const std::optional<int64_t> reach = Reach(positions, size, stride, dilation);
    if (!reach.has_value()) return CannotVary(node, "windows");
    const Node* x = extents_.Resized(Operand(node, 0), axis, *reach);
    return builder_.Window(x, axis, size, stride, dilation);
  }

  NodeOr MakeUnwindow(const GeneralNode& node) {
    const std::vector<Affine> unwindow = Ints(node);  // axis, length, stride, dilation
    if (!unwindow[2].is_fixed() || !unwindow[3].is_fixed()) return CannotVary(node, "a stride");
    const int64_t axis = unwindow[0].constant;
    const int64_t stride = unwindow[2].constant;
    const int64_t dilation = unwindow[3].constant;
    // Positions beyond the true number overlap valid ones, so they are masked.
    const Node* x = extents_.Masked(Operand(node, 0), DimsOf(node, 0), {axis}, Zero(node.dtype));
    const int64_t positions = x->shape()[axis];
    const int64_t size = x->shape().back();
    const std::optional<int64_t> length = Reach(positions, size, stride, dilation);
    if (!length.has_value()) return CannotVary(node, "windows");
    return extents_.Resized(builder_.Unwindow(x, axis, *length, stride, dilation), axis,
                            extents_.Capacity(node.shape[axis]));
  }

  NodeOr MakeGatherElements(const GeneralNode& node) {
    const int64_t axis = std::get<ir::IntAttr>(node.attribute).value;
    const Node* index = Operand(node, 1);
    const Node* gathered = builder_.GatherElements(Operand(node, 0), index, axis);
    const Affine& size = DimsOf(node, 0)[axis];
    if (size.is_fixed()) return gathered;
    // An index between the true size and the capacity is in bounds of the memory, but out of range.
    const Node* position = builder_.Cast(index, DType::kInt64);
    return builder_.Where(builder_.Less(position, extents_.Scalar(size)), gathered,
                          Zero(node.dtype));
  }

  // Values beyond the index's true shape are not scattered.
  NodeOr MakeScatterElements(const GeneralNode& node) {
    const Dims dims = DimsOf(node, 1);
    const Node* index = Operand(node, 1);
    if (Varies(dims)) {
      std::vector<int64_t> axes;
      for (size_t i = 0; i < dims.size(); ++i) axes.push_back(static_cast<int64_t>(i));
      index = extents_.Masked(builder_.Cast(index, DType::kInt64), dims, axes,
                              builder_.ConstInt(DType::kInt64, -1));
    }
    const auto [axis, mode] = std::get<ir::ScatterAttr>(node.attribute);
    return builder_.ScatterElements(Operand(node, 0), index, Operand(node, 2), axis, mode);
  }

  NodeOr MakeElementwise(const GeneralNode& node) {
    const bool elementwise = node.op >= Op::kNeg && node.op <= Op::kWhere;
    // Elementwise ops may compute elements beyond the true size, since no result depends on them.
    // Any other op is only safe if none of its sizes varies.
    const bool fixed = node.varying.index() == 0 && !Varies(node.shape);
    bool supported = elementwise || node.op == Op::kContiguous || node.op == Op::kShard ||
                     node.op == Op::kSend || fixed;
    std::vector<const Node*> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      operands.push_back(Operand(node, static_cast<int>(i)));
      supported =
          supported && (elementwise || !fixed || !Varies(DimsOf(node, static_cast<int>(i))));
    }
    if (!supported) return CannotVary(node, "dimensions");
    return context_->Get(node.op, node.dtype, extents_.Capacity(node.shape), std::move(operands),
                         node.attribute);
  }

  const GeneralGraph& general_;
  std::shared_ptr<ir::Context> context_ = std::make_shared<ir::Context>();
  ops::Builder builder_;
  Extents extents_;
  std::vector<const Node*> made_;  // by general node
};

}  // namespace

absl::StatusOr<graph::Graph> AtCapacity(const GeneralGraph& general) {
  return Lowerer(general).Run();
}

}  // namespace kiln::variables
