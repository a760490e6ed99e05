#include "compiler/ops/builder.h"
#include "compiler/ops/primitives/factors.h"
#include "compiler/ops/primitives/gradients.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ScatterMode;
using ir::Shape;

// A scatter and its upstream gradient.
struct Scattering {
  Builder& b;
  const Node* node;
  const Node* upstream;
  const Node* x = node->operand(0);
  const Node* index = node->operand(1);
  const Node* values = node->operand(2);
  int64_t axis = node->attr<ir::ScatterAttr>().axis;

  // Returns, for each scattered value, the element of `tensor` (of x's shape) at its destination.
  const Node* At(const Node* tensor) const { return b.GatherElements(tensor, index, axis); }
  const Node* Add(const Node* to, const Node* what) const {
    return b.ScatterElements(to, index, what, axis, ScatterMode::kAdd);
  }
};

// Returns whether a value is the last one scattered to its element.
const Node* IsLast(const Scattering& s) {
  const Shape& shape = s.index->shape();
  Shape elements = shape;
  elements[s.axis] = s.x->shape()[s.axis];
  // Scatters each value's number instead: every element then holds the number of its last value.
  const Node* number = s.b.Iota(DType::kInt64, shape, s.axis);
  const Node* none = s.b.BroadcastTo(s.b.ConstInt(DType::kInt64, -1), elements);
  const Node* last = s.b.ScatterElements(none, s.index, number, s.axis, ScatterMode::kSet);
  return s.b.Equal(s.At(last), number);
}

Adjoints SetGradient(const Scattering& s) {
  // x has no gradient where it was overwritten; if several values go to one element only the last
  // one has a gradient.
  const Node* zeros = s.b.FullLike(s.values, 0);
  const Node* kept = s.b.ScatterElements(s.upstream, s.index, zeros, s.axis, ScatterMode::kSet);
  return {kept, nullptr, s.b.Where(IsLast(s), s.At(s.upstream), zeros)};
}

Adjoints ExtremeGradient(const Scattering& s) {
  const DType dtype = s.node->dtype();
  const auto is_nan = [&](const Node* x) { return s.b.Binary(Op::kCmpNe, x, x); };
  const Node* x_wins = s.b.Binary(Op::kOr, s.b.Equal(s.x, s.node), is_nan(s.x));
  const Node* value_wins = s.b.Binary(Op::kOr, s.b.Equal(s.values, s.At(s.node)), is_nan(s.values));
  // All values equal to the result share its gradient, including x's element. NaN values count as
  // equal, since the result is then NaN.
  const Node* winners = s.Add(s.b.Cast(x_wins, dtype), s.b.Cast(value_wins, dtype));
  const Node* share = s.b.Div(s.upstream, winners);
  const Node* zero = s.b.Const(dtype, 0);
  return {s.b.Where(x_wins, share, zero), nullptr, s.b.Where(value_wins, s.At(share), zero)};
}

Adjoints ProductGradient(const Scattering& s) {
  const Factors of_x = FactorsOf(s.b, s.x);
  const Factors of_values = FactorsOf(s.b, s.values);
  const Factors all = {
      s.b.ScatterElements(of_x.nonzero, s.index, of_values.nonzero, s.axis, ScatterMode::kMul),
      s.Add(of_x.zeros, of_values.zeros), s.Add(of_x.vanishing, of_values.vanishing)};
  const Factors met = {s.At(all.nonzero), s.At(all.zeros), s.At(all.vanishing)};
  return {s.b.Mul(s.upstream, ProductOfOthers(s.b, all, of_x)), nullptr,
          s.b.Mul(s.At(s.upstream), ProductOfOthers(s.b, met, of_values))};
}

}  // namespace

Adjoints GatherElementsGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* zeros = b.FullLike(node->operand(0), 0);
  const int64_t axis = node->attr<ir::IntAttr>().value;
  // An element that was gathered several times gets the sum.
  return {b.ScatterElements(zeros, node->operand(1), upstream, axis, ScatterMode::kAdd), nullptr};
}

Adjoints ScatterElementsGradient(Builder& b, const Node* node, const Node* upstream) {
  const Scattering s{b, node, upstream};
  switch (node->attr<ir::ScatterAttr>().mode) {
    case ScatterMode::kSet:
      return SetGradient(s);
    case ScatterMode::kAdd:
      return {upstream, nullptr, s.At(upstream)};
    case ScatterMode::kMul:
      return ProductGradient(s);
    case ScatterMode::kMax:
    case ScatterMode::kMin:
      return ExtremeGradient(s);
  }
  return {};
}

}  // namespace kiln::ops
