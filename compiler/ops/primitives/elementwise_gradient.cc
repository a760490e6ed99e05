#include <numbers>

#include "compiler/ops/builder.h"
#include "compiler/ops/primitives/gradients.h"

namespace kiln::ops {
namespace {

using ir::Node;
using ir::Op;

// Returns an operand's part of `upstream`: none if it lost, half if both are equal and all if
// either is NaN, like PyTorch.
const Node* Share(Builder& b, const Node* loses, const Node* ties, const Node* upstream) {
  const Node* zero = b.Const(upstream->dtype(), 0);
  return b.Where(loses, zero, b.Where(ties, b.Mul(upstream, 0.5), upstream));
}

}  // namespace

Adjoints NegGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Neg(upstream)};
}

Adjoints ReciprocalGradient(Builder& b, const Node* node, const Node* upstream) {
  // d(1/x) = -1/x² dx = -y² dx, using the known y.
  return {b.Neg(b.Mul(upstream, b.Mul(node, node)))};
}

Adjoints SqrtGradient(Builder& b, const Node* node, const Node* upstream) {
  // d(sqrt x) = dx / (2 sqrt x).
  return {b.Div(b.Mul(upstream, 0.5), node)};
}

Adjoints Exp2Gradient(Builder& b, const Node* node, const Node* upstream) {
  // d2^x = 2^x ln 2 dx.
  return {b.Mul(upstream, b.Mul(node, std::numbers::ln2))};
}

Adjoints Log2Gradient(Builder& b, const Node* node, const Node* upstream) {
  // d(log2 x) = dx / (x ln 2).
  return {b.Div(b.Mul(upstream, std::numbers::log2e), node->operand(0))};
}

Adjoints SinGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Mul(upstream, b.Cos(node->operand(0)))};
}

Adjoints CastGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Cast(upstream, node->operand(0)->dtype())};
}

Adjoints AddGradient(Builder& b, const Node* node, const Node* upstream) {
  return {upstream, upstream};
}

Adjoints SubGradient(Builder& b, const Node* node, const Node* upstream) {
  return {upstream, b.Neg(upstream)};
}

Adjoints MulGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Mul(upstream, node->operand(1)), b.Mul(upstream, node->operand(0))};
}

Adjoints DivGradient(Builder& b, const Node* node, const Node* upstream) {
  // d(a/b) = da/b - (a/b)/b db. Divides twice, since b² could overflow.
  const Node* quotient = b.Div(upstream, node->operand(1));
  return {quotient, b.Neg(b.Mul(quotient, node))};
}

Adjoints ModGradient(Builder& b, const Node* node, const Node* upstream) {
  // mod is a - floor(a / b) b; the derivative of the floor is zero.
  const auto quotient = FindOp("floor_divide")->expand(b, node->operands(), {});
  return {upstream, b.Neg(b.Mul(upstream, b.Detach(quotient.value())))};
}

Adjoints MaximumGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* x = node->operand(0);
  const Node* y = node->operand(1);
  const Node* ties = b.Equal(x, y);
  return {Share(b, b.Less(x, y), ties, upstream), Share(b, b.Less(y, x), ties, upstream)};
}

Adjoints MinimumGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* x = node->operand(0);
  const Node* y = node->operand(1);
  const Node* ties = b.Equal(x, y);
  return {Share(b, b.Less(y, x), ties, upstream), Share(b, b.Less(x, y), ties, upstream)};
}

Adjoints PowGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* base = node->operand(0);
  const Node* exponent = node->operand(1);
  const Node* zero = b.Const(node->dtype(), 0);
  // d(a^b) = b a^(b-1) da + a^b log a db. A zero factor may multiply an infinity or NaN, so
  // PyTorch's conventions apply: the base's derivative is zero where b = 0, and the exponent's
  // where a = 0 and b is not negative.
  const Node* one_less = b.Binary(Op::kPow, base, b.Add(exponent, -1.0));
  const Node* to_base =
      b.Where(b.Equal(exponent, zero), zero, b.Mul(upstream, b.Mul(exponent, one_less)));
  const Node* flat = b.Binary(Op::kAnd, b.Equal(base, zero), b.Not(b.Less(exponent, zero)));
  const Node* to_exponent = b.Where(flat, zero, b.Mul(upstream, b.Mul(node, b.Log(base))));
  return {to_base, to_exponent};
}

Adjoints WhereGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* condition = node->operand(0);
  const Node* zero = b.Const(node->dtype(), 0);
  return {nullptr, b.Where(condition, upstream, zero), b.Where(condition, zero, upstream)};
}

}  // namespace kiln::ops
