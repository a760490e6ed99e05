// Casts and bitcasts that change nothing.
#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/splat.h"
#include "compiler/ir/dtype.h"
#include "compiler/ops/round.h"

namespace kiln::graph {
namespace {

using ir::ConstValue;
using ir::Context;
using ir::DType;
using ir::Node;
using ir::Op;

// Returns whether every value of `from` is a value of `to`.
bool Lossless(DType from, DType to) {
  if (from == DType::kBool) return to != DType::kInvalid;
  if (to == DType::kBool) return false;
  const ir::FloatFormat& format = ir::FormatOf(to);
  if (ir::IsFloat(from)) {
    // A float dtype with at least as many bits of the exponent covers the other's range.
    return ir::IsFloat(to) && format.mantissa_bits >= ir::FormatOf(from).mantissa_bits &&
           format.exponent_bits >= ir::FormatOf(from).exponent_bits;
  }
  int bits = 8 * ir::SizeOf(from);
  if (ir::IsFloat(to)) return format.mantissa_bits + 1 >= bits && format.exponent_bits >= 5;
  int room = 8 * ir::SizeOf(to) - bits;
  if (ir::IsSigned(from) == ir::IsSigned(to)) return room >= 0;
  // An unsigned integer fits a wider signed one; a signed one fits no unsigned one.
  return ir::IsSigned(to) && room > 0;
}

// Returns whether every value of the node, which has a wider float dtype, is also a value of
// `dtype`: it was before widening, and since then ops only selected among values. Zeros that
// padding inserts belong to every dtype. `depth` bounds the walk, which visits shared operands once
// per use.
bool HasOnlyValuesOf(const Node* node, DType dtype, int depth = 8) {
  if (const Node* constant = SplatConst(node)) {
    const double value = constant->attr<ConstValue>().AsDouble();
    return ops::RoundToFloat(dtype, value) == value;
  }
  if (depth == 0) return false;
  auto operand = [&](int i) { return HasOnlyValuesOf(node->operand(i), dtype, depth - 1); };
  switch (node->op()) {
    case Op::kCast:
      return Lossless(node->operand(0)->dtype(), dtype);
    case Op::kNeg:
    case Op::kTrunc:
    case Op::kReduceMax:
    case Op::kGatherElements:
    case Op::kReshape:
    case Op::kPermute:
    case Op::kExpand:
    case Op::kPad:
    case Op::kShrink:
    case Op::kFlip:
    case Op::kWindow:
    case Op::kUnwindow:
      return operand(0);
    case Op::kMax:
    case Op::kMin:
      return operand(0) && operand(1);
    case Op::kWhere:
      return operand(1) && operand(2);
    default:
      return false;
  }
}

const Node* SameDType(Context&, const Node* node) {
  return node->dtype() == node->operand(0)->dtype() ? node->operand(0) : nullptr;
}

// A cast of a lossless cast casts the original operand directly.
const Node* CastOfCast(Context& context, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kCast || !Lossless(inner->operand(0)->dtype(), inner->dtype())) {
    return nullptr;
  }
  return context.WithOperands(node, {inner->operand(0)});
}

// Rounding to a short float and back changes nothing if the value was already rounded. Widen leaves
// such a pair between any two nodes of a short float.
const Node* RoundingOfRounded(Context&, const Node* node) {
  const Node* inner = node->operand(0);
  if (inner->op() != Op::kCast || !ir::IsShortFloat(inner->dtype())) return nullptr;
  const Node* x = inner->operand(0);
  if (x->dtype() != node->dtype() || !ir::IsFloat(x->dtype())) return nullptr;
  return HasOnlyValuesOf(x, inner->dtype()) ? x : nullptr;
}

const Node* BitcastOfBitcast(Context& context, const Node* node) {
  if (node->operand(0)->op() != Op::kBitcast) return nullptr;
  return context.WithOperands(node, {node->operand(0)->operand(0)});
}

}  // namespace

std::vector<ir::Rule> CastRules() {
  return {
      {"same_dtype", {Op::kCast, Op::kBitcast}, SameDType},
      {"cast_of_cast", {Op::kCast}, CastOfCast},
      {"rounding_of_rounded", {Op::kCast}, RoundingOfRounded},
      {"bitcast_of_bitcast", {Op::kBitcast}, BitcastOfBitcast},
  };
}

}  // namespace kiln::graph
