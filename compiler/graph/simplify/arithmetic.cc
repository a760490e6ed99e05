// Identities of elementwise ops.
#include <cmath>
#include <optional>

#include "compiler/graph/simplify/rules.h"
#include "compiler/graph/splat.h"

namespace kiln::graph {
namespace {

using ir::ConstValue;
using ir::Context;
using ir::DType;
using ir::Node;
using ir::Op;

// The right operand for which an op returns its left operand bit for bit.
struct Identity {
  Op op;
  std::optional<double> of_floats;
  std::optional<double> of_integers;
  std::optional<double> of_bools;
};
constexpr Identity kIdentities[] = {
    {Op::kAdd, -0.0, 0, {}},  // -0.0 + 0.0 is 0.0, not -0.0
    {Op::kSub, 0.0, 0, {}},  {Op::kMul, 1, 1, {}},  {Op::kDiv, 1, {}, {}}, {Op::kIDiv, {}, 1, {}},
    {Op::kPow, 1, 1, {}},    {Op::kAnd, {}, {}, 1}, {Op::kOr, {}, 0, 0},   {Op::kXor, {}, 0, 0},
    {Op::kShl, {}, 0, {}},   {Op::kShr, {}, 0, {}},
};

const Node* DropIdentity(Context&, const Node* node) {
  for (const Identity& identity : kIdentities) {
    if (identity.op != node->op()) continue;
    const std::optional<double>& value = ir::IsFloat(node->dtype())      ? identity.of_floats
                                         : node->dtype() == DType::kBool ? identity.of_bools
                                                                         : identity.of_integers;
    return value.has_value() && IsSplat(node->operand(1), *value) ? node->operand(0) : nullptr;
  }
  return nullptr;
}

// Ops whose right constant decides the result: x * 0 and x & 0 of integers, x | true. Not for
// floats: 0 times an infinity is NaN, and 0 times a negative number is -0.
const Node* Absorb(Context&, const Node* node) {
  const Node* right = node->operand(1);
  if (ir::IsFloat(node->dtype())) return nullptr;
  bool absorbs = node->op() == Op::kOr ? node->dtype() == DType::kBool && IsSplat(right, 1)
                                       : IsSplat(right, 0);
  return absorbs ? right : nullptr;
}

const Node* ModOne(Context& context, const Node* node) {
  if (ir::IsFloat(node->dtype()) || !IsSplat(node->operand(1), 1)) return nullptr;
  return MakeSplat(context, node->dtype(), node->shape(), 0);
}

const Node* SameOperands(Context& context, const Node* node) {
  if (node->operand(0) != node->operand(1)) return nullptr;
  switch (node->op()) {
    // For floats too: max(NaN, NaN) is NaN.
    case Op::kMax:
    case Op::kMin:
    case Op::kAnd:
    case Op::kOr:
      return node->operand(0);
    case Op::kXor:
      return MakeSplat(context, node->dtype(), node->shape(), 0);
    default:
      break;
  }
  if (ir::IsFloat(node->operand(0)->dtype())) return nullptr;  // NaN and infinity
  double result = node->op() == Op::kCmpEq ? 1 : 0;            // sub, cmplt, cmpne: 0
  return MakeSplat(context, node->dtype(), node->shape(), result);
}

const Node* UndoInvolution(Context&, const Node* node) {
  return node->operand(0)->op() == node->op() ? node->operand(0)->operand(0) : nullptr;
}

// x + -y = x - y, x - -y = x + y: exact in every rounding mode.
const Node* AddOfNeg(Context& context, const Node* node) {
  if (node->operand(1)->op() != Op::kNeg) return nullptr;
  Op op = node->op() == Op::kAdd ? Op::kSub : Op::kAdd;
  return context.Get(op, node->dtype(), node->shape(),
                     {node->operand(0), node->operand(1)->operand(0)});
}

// -x + y = y - x: both round the same exact number.
const Node* NegPlus(Context& context, const Node* node) {
  if (node->operand(0)->op() != Op::kNeg) return nullptr;
  return context.Get(Op::kSub, node->dtype(), node->shape(),
                     {node->operand(1), node->operand(0)->operand(0)});
}

const Node* ProductOfNegs(Context& context, const Node* node) {
  const Node *a = node->operand(0), *b = node->operand(1);
  if (a->op() != Op::kNeg || b->op() != Op::kNeg) return nullptr;
  return context.WithOperands(node, {a->operand(0), b->operand(0)});
}

const Node* TimesMinusOne(Context& context, const Node* node) {
  bool can_be_negative = ir::IsSigned(node->dtype());
  if (!can_be_negative || !IsSplat(node->operand(1), -1)) return nullptr;
  return context.Get(Op::kNeg, node->dtype(), node->shape(), {node->operand(0)});
}

// x / c = x * (1/c) exactly, for a power of two whose reciprocal is a normal number.
const Node* DivideByPowerOfTwo(Context& context, const Node* node) {
  const Node* constant = SplatConst(node->operand(1));
  bool wide = node->dtype() == DType::kFloat32 || node->dtype() == DType::kFloat64;
  if (constant == nullptr || !wide) return nullptr;
  double value = constant->attr<ConstValue>().AsDouble();
  int exponent = 0;
  if (!std::isfinite(value) || std::abs(std::frexp(value, &exponent)) != 0.5) return nullptr;
  // Well within float32's normal exponents, -126 to 127.
  if (exponent < -100 || exponent > 100) return nullptr;
  const Node* reciprocal = MakeSplat(context, node->dtype(), node->shape(), 1 / value);
  return context.Get(Op::kMul, node->dtype(), node->shape(), {node->operand(0), reciprocal});
}

// Small powers as products; pow(x, 0) is 1 for every x, NaN included (IEEE 754-2019, 9.2.1).
const Node* SmallPower(Context& context, const Node* node) {
  const Node* x = node->operand(0);
  auto mul = [&](const Node* a, const Node* b) {
    return context.Get(Op::kMul, node->dtype(), node->shape(), {a, b});
  };
  if (IsSplat(node->operand(1), 0)) return MakeSplat(context, node->dtype(), node->shape(), 1);
  if (IsSplat(node->operand(1), 2)) return mul(x, x);
  if (IsSplat(node->operand(1), 3)) return mul(mul(x, x), x);
  if (ir::IsFloat(node->dtype()) && IsSplat(node->operand(1), -1)) {
    return context.Get(Op::kReciprocal, node->dtype(), node->shape(), {x});
  }
  return nullptr;
}

// A bool compared with false or true.
const Node* CompareBool(Context& context, const Node* node) {
  const Node* x = node->operand(0);
  if (x->dtype() != DType::kBool) return nullptr;
  bool with_false = IsSplat(node->operand(1), 0);
  if (!with_false && !IsSplat(node->operand(1), 1)) return nullptr;
  bool keeps = (node->op() == Op::kCmpNe) == with_false;
  return keeps ? x : context.Get(Op::kNot, DType::kBool, node->shape(), {x});
}

// A bool cast to a number, compared with zero.
const Node* CompareCastOfBool(Context& context, const Node* node) {
  const Node* cast = node->operand(0);
  if (cast->op() != Op::kCast || cast->operand(0)->dtype() != DType::kBool) return nullptr;
  if (!IsSplat(node->operand(1), 0)) return nullptr;
  const Node* x = cast->operand(0);
  return node->op() == Op::kCmpNe ? x : context.Get(Op::kNot, DType::kBool, node->shape(), {x});
}

const Node* WhereDecided(Context&, const Node* node) {
  if (node->operand(1) == node->operand(2)) return node->operand(1);
  if (IsSplat(node->operand(0), 1)) return node->operand(1);
  if (IsSplat(node->operand(0), 0)) return node->operand(2);
  return nullptr;
}

const Node* WhereOfNot(Context& context, const Node* node) {
  if (node->operand(0)->op() != Op::kNot) return nullptr;
  return context.WithOperands(node,
                              {node->operand(0)->operand(0), node->operand(2), node->operand(1)});
}

const Node* WhereOfBools(Context&, const Node* node) {
  bool yes_no =
      node->dtype() == DType::kBool && IsSplat(node->operand(1), 1) && IsSplat(node->operand(2), 0);
  return yes_no ? node->operand(0) : nullptr;
}

// Both ops only affect gradients, and none remains where these rules run (see Simplify).
const Node* DropDetach(Context&, const Node* node) { return node->operand(0); }

// A value that is already in memory need not be materialised.
const Node* DropContiguous(Context&, const Node* node) {
  Op below = node->operand(0)->op();
  return below == Op::kInput || below == Op::kContiguous ? node->operand(0) : nullptr;
}

}  // namespace

std::vector<ir::Rule> ArithmeticRules() {
  return {
      {"drop_identity",
       {Op::kAdd, Op::kSub, Op::kMul, Op::kDiv, Op::kIDiv, Op::kPow, Op::kAnd, Op::kOr, Op::kXor,
        Op::kShl, Op::kShr},
       DropIdentity},
      {"absorb", {Op::kMul, Op::kAnd, Op::kOr}, Absorb},
      {"mod_one", {Op::kMod}, ModOne},
      {"same_operands",
       {Op::kMax, Op::kMin, Op::kAnd, Op::kOr, Op::kXor, Op::kSub, Op::kCmpLt, Op::kCmpEq,
        Op::kCmpNe},
       SameOperands},
      {"undo_involution", {Op::kNeg, Op::kNot}, UndoInvolution},
      {"add_of_neg", {Op::kAdd, Op::kSub}, AddOfNeg},
      {"neg_plus", {Op::kAdd}, NegPlus},
      {"product_of_negs", {Op::kMul, Op::kDiv}, ProductOfNegs},
      {"times_minus_one", {Op::kMul}, TimesMinusOne},
      {"divide_by_power_of_two", {Op::kDiv}, DivideByPowerOfTwo},
      {"small_power", {Op::kPow}, SmallPower},
      {"compare_bool", {Op::kCmpEq, Op::kCmpNe}, CompareBool},
      {"compare_cast_of_bool", {Op::kCmpEq, Op::kCmpNe}, CompareCastOfBool},
      {"where_decided", {Op::kWhere}, WhereDecided},
      {"where_of_not", {Op::kWhere}, WhereOfNot},
      {"where_of_bools", {Op::kWhere}, WhereOfBools},
      {"drop_detach", {Op::kDetach, Op::kWithDerivative}, DropDetach},
      {"drop_contiguous", {Op::kContiguous}, DropContiguous},
  };
}

}  // namespace kiln::graph
