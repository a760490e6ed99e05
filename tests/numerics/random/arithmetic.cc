// Computing steps of random graphs: elementwise ops, reductions, conversions, sources.
#include <algorithm>
#include <iterator>
#include <numeric>

#include "compiler/ops/rules/infer.h"
#include "compiler/ops/testing/build_op.h"
#include "tests/numerics/random/generator.h"

namespace kiln::numerics {

using ir::DType;
using ir::Node;
using ir::Op;

// x * x + 1/2: positive, and not close to 0.
Value Generator::Positive(const Value& x) {
  return {builder_.Add(builder_.Mul(x.node, x.node), 0.5), x.exact};
}

// In a sum of products the padding after one factor counts as zero, and the other factor is not
// guarded: an infinity may give NaN there (kernel/expression.h). Stored products are padded with
// zeros, no matter what they are.
const Node* Generator::Fenced(const Node* product) {
  return options_.special ? builder_.Contiguous(product) : product;
}

Value Generator::Apply(const char* name, std::vector<const Node*> operands,
                       const Attributes& attributes) {
  const auto made =
      ops::BuildOp(builder_, *ops::FindOp(name), operands, attributes, DType::kInvalid);
  return made.ok() ? Value{Fenced(*made)} : Value{};
}

Value Generator::FloatUnary() {
  const Value x = PickFloat();
  if (x.node == nullptr) return {};
  switch (Draw(9)) {
    case 0:
      return {builder_.Neg(x.node), x.exact};
    case 1:
      return {builder_.Sin(x.node)};
    case 2:
      return x.measured.largest > 7 ? Value{} : Value{builder_.Exp2(x.node)};
    case 3:
      return {builder_.Sqrt(Positive(x).node)};
    case 4:
      return {builder_.Log2(Positive(x).node)};
    case 5:
      return {builder_.Reciprocal(Positive(x).node)};
    case 6:
      return x.exact ? Value{builder_.Trunc(x.node), true} : Value{};
    case 7:  // no gradient passes through it; a graph of one float dtype is for gradients
      return {options_.only == DType::kInvalid ? builder_.Detach(x.node) : x.node, x.exact};
    default:
      return {builder_.Contiguous(x.node), x.exact};
  }
}

Value Generator::FloatBinary() {
  const Value x = PickFloat();
  if (x.node == nullptr) return {};
  const Value y = Partner(x);
  if (y.node == nullptr) return {};
  const bool exact = x.exact && y.exact;
  switch (Draw(7)) {
    case 0:
      return {builder_.Add(x.node, y.node), exact};
    case 1:
      return {builder_.Sub(x.node, y.node), exact};
    case 2:
      return {Fenced(builder_.Mul(x.node, y.node)), exact};
    case 3:
      return {builder_.Binary(Op::kMax, x.node, y.node), exact};
    case 4:
      return {builder_.Binary(Op::kMin, x.node, y.node), exact};
    case 5:
      return {builder_.Div(x.node, Positive(y).node)};
    default:
      if (x.measured.largest > 3 || y.measured.largest > 3) return {};
      return {builder_.Binary(Op::kPow, Positive(x).node, y.node)};
  }
}

Value Generator::Integer() {
  static constexpr Op kOps[] = {Op::kAdd, Op::kSub, Op::kMul, Op::kIDiv, Op::kMod,
                                Op::kMax, Op::kMin, Op::kAnd, Op::kOr,   Op::kXor,
                                Op::kShl, Op::kShr, Op::kPow};
  const Value x = PickInt();
  if (x.node == nullptr) return {};
  const Value y = Partner(x);
  if (y.node == nullptr) return {};
  const Op op = kOps[Draw(std::size(kOps))];
  if (op != Op::kShl && op != Op::kShr) return {builder_.Binary(op, x.node, y.node)};
  if (Coin()) return {builder_.Binary(op, x.node, y.node)};
  const Node* amount = builder_.Binary(Op::kAnd, y.node, builder_.ConstInt(y.node->dtype(), 7));
  return {builder_.Binary(op, x.node, amount)};
}

// A comparison, or a selection by one.
Value Generator::Choice() {
  static constexpr Op kOps[] = {Op::kCmpLt, Op::kCmpEq, Op::kCmpNe};
  const Value condition =
      Pick([](const Value& value) { return value.node->dtype() == DType::kBool; });
  if (condition.node == nullptr || Coin()) {
    const Value x = Pick([](const Value& value) { return value.exact; });
    if (x.node == nullptr) return {};
    const Value y = Partner(x);
    if (y.node == nullptr || !y.exact) return {};
    return {builder_.Binary(kOps[Draw(std::size(kOps))], x.node, y.node), true};
  }
  const Value x = PickAny();
  const Value y = Partner(x);
  if (y.node == nullptr) return {};
  const auto shape =
      ops::BroadcastShapes({condition.node->shape(), x.node->shape(), y.node->shape()});
  if (!shape.ok()) return {};
  return {builder_.Where(condition.node, x.node, y.node), x.exact && y.exact};
}

Value Generator::Reduction() {
  const Value x = PickAny();
  const DType dtype = x.node->dtype();
  if (x.node->shape().empty()) return {};
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < Rank(x); ++axis) {
    if (Coin()) axes.push_back(axis);
  }
  const bool keepdims = Coin();
  const bool is_max = dtype == DType::kBool || Draw(4) == 0;
  // The maximum of no elements is the lowest number; bool and float8 are not added.
  if (is_max) return {builder_.Max(x.node, axes, keepdims), x.exact};
  if (ir::IsFloat8(dtype)) return {};
  return Draw(3) != 0 ? Value{builder_.Sum(x.node, axes, keepdims), x.exact}
                      : Value{builder_.Prod(x.node, axes, keepdims)};
}

Value Generator::Contraction() {
  const Value x = PickFloat();
  if (x.node == nullptr || x.node->shape().size() < 2) return {};
  const Value y = NewInput(x.node->dtype(), {x.node->shape().back(), Between(1, 9)});
  return Apply("matmul", {x.node, y.node}, {});
}

Value Generator::Conversion() {
  const Value x = PickAny();
  return x.node == nullptr ? Value{} : InDType(x, AnyDType());
}

Value Generator::Source() {
  const DType dtype = AnyDType();
  ir::Shape shape = RandomShape();
  if (dtype == DType::kBool || Coin()) {
    return {builder_.Full(dtype, shape, RandomNumber(dtype, false)), true};
  }
  if (shape.empty() || ir::IsFloat8(dtype)) return {};
  return {builder_.Iota(dtype, shape, Between(0, static_cast<int64_t>(shape.size()) - 1)), true};
}

}  // namespace kiln::numerics
