#include "compiler/graph/splat.h"

namespace kiln::graph {

using ir::ConstValue;
using ir::Node;
using ir::Op;

const Node* SplatConst(const Node* node) {
  while (true) {
    switch (node->op()) {
      case Op::kConst:
        return node;
      case Op::kReshape:
      case Op::kExpand:
      case Op::kPermute:
      case Op::kShrink:
      case Op::kFlip:
        node = node->operand(0);
        break;
      default:
        return nullptr;
    }
  }
}

namespace {

ConstValue ValueOf(ir::DType dtype, double value) {
  return ir::IsFloat(dtype) ? ConstValue::Float(value)
                            : ConstValue::Int(static_cast<int64_t>(value));
}

}  // namespace

bool IsSplat(const Node* node, double value) {
  const Node* constant = SplatConst(node);
  if (constant == nullptr) return false;
  // Compares bits, so that 0.0 is not -0.0.
  return constant->attr<ConstValue>() == ValueOf(constant->dtype(), value);
}

const Node* MakeSplat(ir::Context& context, ir::DType dtype, const ir::Shape& shape, double value) {
  return SplatTo(context, context.Get(Op::kConst, dtype, {}, {}, ValueOf(dtype, value)), shape);
}

const Node* SplatTo(ir::Context& context, const Node* constant, const ir::Shape& shape) {
  return ExpandTo(context, ReshapeTo(context, constant, ir::Shape(shape.size(), 1)), shape);
}

const Node* ReshapeTo(ir::Context& context, const Node* node, const ir::Shape& shape) {
  if (node->shape() == shape) return node;
  return context.Get(Op::kReshape, node->dtype(), shape, {node});
}

const Node* ExpandTo(ir::Context& context, const Node* node, const ir::Shape& shape) {
  if (node->shape() == shape) return node;
  return context.Get(Op::kExpand, node->dtype(), shape, {node});
}

}  // namespace kiln::graph
