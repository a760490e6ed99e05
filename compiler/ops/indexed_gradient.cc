#include "compiler/ops/builder.h"
#include "compiler/ops/gradients.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::ScatterMode;
using ir::Shape;

// One scatter, whose gradient is asked for.
struct Scattering {
  Builder& b;
  const Node* node;
  const Node* upstream;
  const Node* x = node->operand(0);
  const Node* index = node->operand(1);
  const Node* values = node->operand(2);
  int64_t axis = node->attr<ir::ScatterAttr>().axis;

  // What the scattered values meet in a tensor of x's shape.
  const Node* At(const Node* tensor) const { return b.GatherElements(tensor, index, axis); }
  const Node* Add(const Node* to, const Node* what) const {
    return b.ScatterElements(to, index, what, axis, ScatterMode::kAdd);
  }
};

// Whether a value is the last one that goes to its element.
const Node* IsLast(const Scattering& s) {
  const Shape& shape = s.index->shape();
  Shape elements = shape;
  elements[s.axis] = s.x->shape()[s.axis];
  const Node* number = s.b.Iota(DType::kInt64, shape, s.axis);
  const Node* none = s.b.BroadcastTo(s.b.ConstInt(DType::kInt64, -1), elements);
  const Node* last = s.b.ScatterElements(none, s.index, number, s.axis, ScatterMode::kSet);
  return s.b.Equal(s.At(last), number);
}

Adjoints SetGradient(const Scattering& s) {
  const Node* zeros = s.b.FullLike(s.values, 0);
  const Node* kept = s.b.ScatterElements(s.upstream, s.index, zeros, s.axis, ScatterMode::kSet);
  return {kept, nullptr, s.b.Where(IsLast(s), s.At(s.upstream), zeros)};
}

Adjoints ExtremeGradient(const Scattering& s) {
  const DType dtype = s.node->dtype();
  const Node* x_wins = s.b.Equal(s.x, s.node);
  const Node* value_wins = s.b.Equal(s.values, s.At(s.node));
  const Node* winners = s.Add(s.b.Cast(x_wins, dtype), s.b.Cast(value_wins, dtype));
  const Node* share = s.b.Div(s.upstream, winners);
  const Node* zero = s.b.Const(dtype, 0);
  return {s.b.Where(x_wins, share, zero), nullptr, s.b.Where(value_wins, s.At(share), zero)};
}

// The product of all other factors: that of those that are not zero, as long as no other is zero.
Adjoints ProductGradient(const Scattering& s) {
  const DType dtype = s.node->dtype();
  const Node* zero = s.b.Const(dtype, 0);
  const Node* one = s.b.Const(dtype, 1);
  const Node* x_is_zero = s.b.Equal(s.x, zero);
  const Node* value_is_zero = s.b.Equal(s.values, zero);
  const Node* x_factor = s.b.Where(x_is_zero, one, s.x);
  const Node* value_factor = s.b.Where(value_is_zero, one, s.values);
  const Node* zeros = s.Add(s.b.Cast(x_is_zero, dtype), s.b.Cast(value_is_zero, dtype));
  const Node* product =
      s.b.ScatterElements(x_factor, s.index, value_factor, s.axis, ScatterMode::kMul);
  auto others = [&](const Node* whole, const Node* count, const Node* factor, const Node* is_zero) {
    const Node* other_zeros = s.b.Sub(count, s.b.Cast(is_zero, dtype));
    return s.b.Where(s.b.Equal(other_zeros, zero), s.b.Div(whole, factor), zero);
  };
  const Node* scaled = s.b.Mul(s.upstream, product);
  return {others(scaled, zeros, x_factor, x_is_zero), nullptr,
          others(s.At(scaled), s.At(zeros), value_factor, value_is_zero)};
}

}  // namespace

Adjoints GatherElementsGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* zeros = b.FullLike(node->operand(0), 0);
  const int64_t axis = node->attr<ir::IntAttr>().value;
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
