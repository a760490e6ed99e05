// Constants: folded, brought to one form, and moved to the right operand.
#include <algorithm>

#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/splat.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/ops/op_def.h"

namespace kiln::graph {
namespace {

using ir::ConstValue;
using ir::Context;
using ir::Node;
using ir::Op;

ops::HostTensor ToHost(const Node* constant) {
  ops::HostTensor tensor = ops::HostTensor::Zeros(constant->dtype(), {});
  ConstValue value = constant->attr<ConstValue>();
  if (ir::IsFloat(constant->dtype())) {
    tensor.SetFloat(0, value.AsDouble());
  } else {
    tensor.SetInt(0, value.AsInt());
  }
  return tensor;
}

const Node* FromHost(Context& context, const ops::HostTensor& tensor) {
  ConstValue value = ir::IsFloat(tensor.dtype) ? ConstValue::Float(tensor.Float(0))
                                               : ConstValue::Int(tensor.Int(0));
  return context.Get(Op::kConst, tensor.dtype, {}, {}, value);
}

// An elementwise op on constants is a constant: the result of the op's reference semantics.
const Node* Fold(Context& context, const Node* node) {
  std::vector<const Node*> constants;
  for (const Node* operand : node->operands()) {
    constants.push_back(SplatConst(operand));
    if (constants.back() == nullptr) return nullptr;
  }
  std::vector<ops::HostTensor> values;
  for (const Node* constant : constants) values.push_back(ToHost(constant));
  std::vector<const ops::HostTensor*> operands;
  for (const ops::HostTensor& value : values) operands.push_back(&value);
  // Evaluated on scalars, since the tensor that the constant fills may have any size.
  const Node* scalar = context.Get(node->op(), node->dtype(), {}, constants, node->attribute());
  absl::StatusOr<ops::HostTensor> result = ops::DefOf(node->op()).evaluate(scalar, operands);
  if (!result.ok()) return nullptr;
  return SplatTo(context, FromHost(context, *result), node->shape());
}

// Movement of a constant tensor is a constant tensor of the result's shape.
const Node* Move(Context& context, const Node* node) {
  const Node* constant = SplatConst(node->operand(0));
  return constant == nullptr ? nullptr : SplatTo(context, constant, node->shape());
}

const Node* MovePad(Context& context, const Node* node) {
  // Padding fills in zeros, which differ from any other constant.
  return IsSplat(node->operand(0), 0) ? Move(context, node) : nullptr;
}

// Moves constants to the right operand, so that other rules look only there.
const Node* Commute(Context& context, const Node* node) {
  bool left = SplatConst(node->operand(0)) != nullptr;
  bool right = SplatConst(node->operand(1)) != nullptr;
  if (!left || right) return nullptr;
  return context.WithOperands(node, {node->operand(1), node->operand(0)});
}

// (x op c) op d = x op (c op d): exact for integers, which wrap.
const Node* Reassociate(Context& context, const Node* node) {
  const Node* left = node->operand(0);
  if (ir::IsFloat(node->dtype()) || left->op() != node->op()) return nullptr;
  const Node* inner = SplatConst(left->operand(1));
  const Node* outer = SplatConst(node->operand(1));
  // If all three are constants, Fold handles them.
  if (inner == nullptr || outer == nullptr || SplatConst(left->operand(0)) != nullptr) {
    return nullptr;
  }
  const Node* both = context.WithOperands(node, {left->operand(1), node->operand(1)});
  return context.WithOperands(node, {left->operand(0), both});
}

}  // namespace

std::vector<ir::Rule> ConstantRules() {
  return {
      {"fold_constants",
       {Op::kNeg,   Op::kReciprocal, Op::kSqrt,    Op::kExp2, Op::kLog2, Op::kSin,   Op::kTrunc,
        Op::kNot,   Op::kCast,       Op::kBitcast, Op::kAdd,  Op::kSub,  Op::kMul,   Op::kDiv,
        Op::kIDiv,  Op::kMod,        Op::kMax,     Op::kMin,  Op::kPow,  Op::kCmpLt, Op::kCmpEq,
        Op::kCmpNe, Op::kAnd,        Op::kOr,      Op::kXor,  Op::kShl,  Op::kShr,   Op::kWhere},
       Fold},
      {"move_constant",
       {Op::kReshape, Op::kPermute, Op::kExpand, Op::kShrink, Op::kFlip, Op::kWindow},
       Move},
      {"pad_zero_constant", {Op::kPad, Op::kUnwindow}, MovePad},
      {"constant_to_the_right",
       {Op::kAdd, Op::kMul, Op::kAnd, Op::kOr, Op::kXor, Op::kCmpEq, Op::kCmpNe},
       Commute},
      {"merge_integer_constants", {Op::kAdd, Op::kMul, Op::kAnd, Op::kOr, Op::kXor}, Reassociate},
  };
}

}  // namespace kiln::graph
