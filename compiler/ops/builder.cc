#include "compiler/ops/builder.h"

#include <algorithm>
#include <numbers>
#include <numeric>
#include <utility>

#include "compiler/ops/promote.h"
#include "compiler/ops/round.h"
#include "compiler/ops/rules/infer.h"
#include "compiler/ops/rules/sliding.h"
#include "proto/check/check.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::IntAttr;
using ir::IntsAttr;
using ir::Node;
using ir::Op;
using ir::Shape;

bool IsComparison(Op op) { return op == Op::kCmpLt || op == Op::kCmpEq || op == Op::kCmpNe; }

int64_t NormalAxis(int64_t axis, size_t rank) { return NormalizeAxis(axis, rank).value(); }

std::vector<int64_t> NormalAxesOrNone(Builder::Axes axes, size_t rank) {
  return axes.empty() ? std::vector<int64_t>{} : NormalizeAxes(axes, rank).value();
}

// Converts a scalar constant's value to another dtype.
ir::ConstValue Convert(ir::ConstValue value, DType from, DType to) {
  if (ir::IsFloat(from)) {
    const double v = value.AsDouble();
    return ir::IsFloat(to) ? ir::ConstValue::Float(RoundToFloat(to, v))
                           : ir::ConstValue::Int(FloatToInteger(to, v));
  }
  if (!ir::IsFloat(to)) return ir::ConstValue::Int(WrapToInteger(to, value.AsInt()));
  return ir::ConstValue::Float(IntegerToFloat(to, value.AsInt(), from == DType::kUInt64));
}

}  // namespace

const Node* Builder::Make(Op op, DType dtype, Shape shape, std::vector<const Node*> operands,
                          ir::Attribute attribute) {
  if (status_.ok()) status_ = CheckShape(shape);
  return context_.Get(op, dtype, std::move(shape), std::move(operands), std::move(attribute));
}

const Node* Builder::Const(DType dtype, double value) {
  const auto constant = ir::IsFloat(dtype) ? ir::ConstValue::Float(RoundToFloat(dtype, value))
                                           : ir::ConstValue::Int(FloatToInteger(dtype, value));
  return Make(Op::kConst, dtype, {}, {}, constant);
}

const Node* Builder::ConstInt(DType dtype, int64_t value) {
  const auto constant = Convert(ir::ConstValue::Int(value), DType::kInt64, dtype);
  return Make(Op::kConst, dtype, {}, {}, constant);
}

const Node* Builder::Full(DType dtype, const Shape& shape, double value) {
  return BroadcastTo(Const(dtype, value), shape);
}

const Node* Builder::FullLike(const Node* x, double value) {
  return Full(x->dtype(), x->shape(), value);
}

const Node* Builder::Input(int64_t index, DType dtype, const Shape& shape) {
  return Make(Op::kInput, dtype, shape, {}, ir::InputAttr{index});
}

const Node* Builder::Iota(DType dtype, const Shape& shape, int64_t axis) {
  return Make(Op::kIota, dtype, shape, {}, IntAttr{NormalAxis(axis, shape.size())});
}

const Node* Builder::Unary(Op op, const Node* x) { return Make(op, x->dtype(), x->shape(), {x}); }

const Node* Builder::Binary(Op op, const Node* a, const Node* b) {
  const DType dtype = Promote(a->dtype(), b->dtype()).value();
  const Shape shape = BroadcastShapes({a->shape(), b->shape()}).value();
  const Node* left = BroadcastTo(Cast(a, dtype), shape);
  const Node* right = BroadcastTo(Cast(b, dtype), shape);
  return Make(op, IsComparison(op) ? DType::kBool : dtype, shape, {left, right});
}

const Node* Builder::Where(const Node* condition, const Node* a, const Node* b) {
  const DType dtype = Promote(a->dtype(), b->dtype()).value();
  const Shape shape = BroadcastShapes({condition->shape(), a->shape(), b->shape()}).value();
  return Make(Op::kWhere, dtype, shape,
              {BroadcastTo(condition, shape), BroadcastTo(Cast(a, dtype), shape),
               BroadcastTo(Cast(b, dtype), shape)});
}

const Node* Builder::Cast(const Node* x, DType dtype) {
  if (x->dtype() == dtype) return x;
  // Constants are converted here, so that they stay constants before simplification.
  if (x->op() == Op::kConst) {
    return Make(Op::kConst, dtype, {}, {}, Convert(x->attr<ir::ConstValue>(), x->dtype(), dtype));
  }
  return Make(Op::kCast, dtype, x->shape(), {x});
}

const Node* Builder::Bitcast(const Node* x, DType dtype) {
  if (x->dtype() == dtype) return x;
  KILN_CHECK_EQ(ir::SizeOf(x->dtype()), ir::SizeOf(dtype));
  return Make(Op::kBitcast, dtype, x->shape(), {x});
}

// Code generation recognises these two forms and computes e^x and log x directly, so the rounded
// constants lose no digits.
const Node* Builder::Exp(const Node* x) { return Exp2(Mul(x, std::numbers::log2e)); }
const Node* Builder::Log(const Node* x) { return Mul(Log2(x), std::numbers::ln2); }

// cos x = 1 - 2 sin²(x/2): halving is exact, so large arguments lose nothing before sin's range
// reduction.
const Node* Builder::Cos(const Node* x) {
  const Node* half = Sin(Mul(x, 0.5));
  return Add(Mul(Mul(half, half), -2.0), 1.0);
}

const Node* Builder::Reduce(Op op, const Node* x, Axes axes, bool keepdims) {
  const std::vector<int64_t> normal = NormalAxesOrNone(axes, x->shape().size());
  std::vector<int64_t> reduced;
  Shape kept = x->shape();
  for (const int64_t axis : normal) {
    // An axis of size 1 needs no reduction.
    if (kept[axis] != 1) reduced.push_back(axis);
    kept[axis] = 1;
  }
  const Node* result = x;
  if (!reduced.empty()) result = Make(op, x->dtype(), kept, {x}, IntsAttr{reduced});
  if (keepdims) return result;
  Shape squeezed;
  for (size_t i = 0; i < kept.size(); ++i) {
    if (!std::binary_search(normal.begin(), normal.end(), static_cast<int64_t>(i))) {
      squeezed.push_back(kept[i]);
    }
  }
  return Reshape(result, squeezed);
}

const Node* Builder::SumTo(const Node* x, const Shape& shape) {
  const size_t leading = x->shape().size() - shape.size();
  std::vector<int64_t> axes;
  for (size_t i = 0; i < x->shape().size(); ++i) {
    const bool repeated = i < leading || (shape[i - leading] == 1 && x->shape()[i] != 1);
    if (repeated) axes.push_back(static_cast<int64_t>(i));
  }
  return Reshape(Sum(x, axes, true), shape);
}

const Node* Builder::Reshape(const Node* x, const Shape& shape) {
  if (x->shape() == shape) return x;
  const Node* from = x->op() == Op::kReshape ? x->operand(0) : x;
  if (from->shape() == shape) return from;
  return Make(Op::kReshape, x->dtype(), shape, {from});
}

const Node* Builder::Permute(const Node* x, Axes axes) {
  KILN_CHECK_EQ(axes.size(), x->shape().size());
  Shape shape;
  bool identity = true;
  for (size_t i = 0; i < axes.size(); ++i) {
    shape.push_back(x->shape()[axes[i]]);
    identity = identity && axes[i] == static_cast<int64_t>(i);
  }
  if (identity) return x;
  return Make(Op::kPermute, x->dtype(), shape, {x}, IntsAttr{{axes.begin(), axes.end()}});
}

const Node* Builder::Transpose(const Node* x, int64_t axis_a, int64_t axis_b) {
  std::vector<int64_t> axes(x->shape().size());
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[NormalAxis(axis_a, axes.size())], axes[NormalAxis(axis_b, axes.size())]);
  return Permute(x, axes);
}

const Node* Builder::Unsqueeze(const Node* x, int64_t axis) {
  Shape shape = x->shape();
  shape.insert(shape.begin() + NormalAxis(axis, shape.size() + 1), 1);
  return Reshape(x, shape);
}

const Node* Builder::Expand(const Node* x, const Shape& shape) {
  if (x->shape() == shape) return x;
  // After a failure shapes are arbitrary.
  KILN_CHECK(!status_.ok() || x->shape().size() == shape.size()) << shape.size();
  return Make(Op::kExpand, x->dtype(), shape, {x});
}

const Node* Builder::BroadcastTo(const Node* x, const Shape& shape) {
  Shape padded = x->shape();
  KILN_CHECK_LE(padded.size(), shape.size());
  padded.insert(padded.begin(), shape.size() - padded.size(), 1);
  return Expand(Reshape(x, padded), shape);
}

const Node* Builder::Pad(const Node* x, absl::Span<const int64_t> padding) {
  KILN_CHECK_EQ(padding.size(), 2 * x->shape().size());
  Shape shape = x->shape();
  for (size_t i = 0; i < padding.size(); ++i) shape[i / 2] += padding[i];
  if (shape == x->shape()) return x;
  return Make(Op::kPad, x->dtype(), shape, {x}, IntsAttr{{padding.begin(), padding.end()}});
}

const Node* Builder::Concat(absl::Span<const Node* const> parts, int64_t axis) {
  KILN_CHECK(!parts.empty());
  int64_t total = 0;
  for (const Node* part : parts) total += part->shape()[axis];
  Shape position_shape(parts[0]->shape().size(), 1);
  position_shape[axis] = total;
  const Node* position = Iota(DType::kInt64, position_shape, axis);
  const Node* result = nullptr;
  int64_t end = total;
  for (size_t i = parts.size(); i > 0; --i) {
    const int64_t begin = end - parts[i - 1]->shape()[axis];
    std::vector<int64_t> padding(2 * position_shape.size(), 0);
    padding[2 * axis] = begin;
    padding[2 * axis + 1] = total - end;
    const Node* placed = Pad(parts[i - 1], padding);
    const bool is_last = result == nullptr;
    result = is_last ? placed : Where(Less(position, ConstInt(DType::kInt64, end)), placed, result);
    end = begin;
  }
  KILN_CHECK_EQ(end, 0);
  return result;
}

const Node* Builder::Shrink(const Node* x, absl::Span<const int64_t> bounds) {
  KILN_CHECK_EQ(bounds.size(), 2 * x->shape().size());
  Shape shape;
  for (size_t i = 0; i < bounds.size(); i += 2) shape.push_back(bounds[i + 1] - bounds[i]);
  if (shape == x->shape()) return x;
  return Make(Op::kShrink, x->dtype(), shape, {x}, IntsAttr{{bounds.begin(), bounds.end()}});
}

const Node* Builder::Slice(const Node* x, int64_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> bounds;
  for (const int64_t size : x->shape()) bounds.insert(bounds.end(), {0, size});
  const int64_t normal = NormalAxis(axis, x->shape().size());
  bounds[2 * normal] = begin;
  bounds[2 * normal + 1] = end;
  return Shrink(x, bounds);
}

const Node* Builder::Flip(const Node* x, Axes axes) {
  std::vector<int64_t> flipped;
  for (const int64_t axis : NormalAxesOrNone(axes, x->shape().size())) {
    if (x->shape()[axis] > 1) flipped.push_back(axis);
  }
  if (flipped.empty()) return x;
  return Make(Op::kFlip, x->dtype(), x->shape(), {x}, IntsAttr{flipped});
}

const Node* Builder::Window(const Node* x, int64_t axis, int64_t size, int64_t stride,
                            int64_t dilation) {
  const int64_t normal = NormalAxis(axis, x->shape().size());
  Shape shape = x->shape();
  const auto positions = WindowPositions(shape[normal], size, stride, dilation);
  // After a failure shapes are arbitrary.
  if (status_.ok()) status_ = positions.status();
  shape[normal] = positions.value_or(1);
  shape.push_back(size);
  return Make(Op::kWindow, x->dtype(), shape, {x}, IntsAttr{{normal, size, stride, dilation}});
}

const Node* Builder::Unwindow(const Node* x, int64_t axis, int64_t length, int64_t stride,
                              int64_t dilation) {
  const int64_t normal = NormalAxis(axis, x->shape().size() - 1);
  Shape shape = x->shape();
  shape[normal] = length;
  return Make(Op::kUnwindow, x->dtype(), shape, {x}, IntsAttr{{normal, length, stride, dilation}});
}

// In the flattened square the diagonal's elements are size + 1 apart.
const Node* Builder::Diagonal(const Node* x) {
  const int64_t size = x->shape().back();
  Shape flat(x->shape().begin(), x->shape().end() - 2);
  Shape skewed = flat;
  flat.push_back(size * size);
  skewed.insert(skewed.end(), {size, size + 1});
  std::vector<int64_t> padding(2 * flat.size(), 0);
  // size * (size + 1) elements: the diagonal becomes the first column.
  padding.back() = size;
  const Node* rows = Reshape(Pad(Reshape(x, flat), padding), skewed);
  const Shape result(skewed.begin(), skewed.end() - 1);
  return Reshape(Slice(rows, -1, 0, 1), result);
}

const Node* Builder::WithDerivative(const Node* y, const Node* x, const Node* derivative) {
  const Shape shape = BroadcastShapes({y->shape(), x->shape(), derivative->shape()}).value();
  return Make(Op::kWithDerivative, x->dtype(), shape,
              {BroadcastTo(y, shape), BroadcastTo(x, shape), BroadcastTo(derivative, shape)});
}

const Node* Builder::Shard(const Node* x, absl::Span<const int64_t> spec) {
  return Make(Op::kShard, x->dtype(), x->shape(), {x},
              IntsAttr{std::vector<int64_t>(spec.begin(), spec.end())});
}

const Node* Builder::Send(const Node* x, int64_t source, int64_t target) {
  return Make(Op::kSend, x->dtype(), x->shape(), {x}, IntsAttr{{source, target}});
}

const Node* Builder::GatherElements(const Node* x, const Node* index, int64_t axis) {
  const int64_t normal = NormalAxis(axis, x->shape().size());
  Shape shape = x->shape();
  shape[normal] = index->shape()[normal];
  return Make(Op::kGatherElements, x->dtype(), shape, {x, index}, IntAttr{normal});
}

const Node* Builder::ScatterElements(const Node* x, const Node* index, const Node* values,
                                     int64_t axis, ir::ScatterMode mode) {
  const int64_t normal = NormalAxis(axis, x->shape().size());
  return Make(Op::kScatterElements, x->dtype(), x->shape(), {x, index, values},
              ir::ScatterAttr{normal, mode});
}

// Returns a shape of this rank with the index's elements along one axis.
static Shape AlongAxis(const Node* index, int64_t axis, size_t rank) {
  Shape shape(rank, 1);
  shape[axis] = ir::NumElements(index->shape());
  return shape;
}

const Node* Builder::Gather(const Node* x, const Node* index, int64_t axis) {
  const int64_t normal = NormalAxis(axis, x->shape().size());
  const Node* along = Reshape(index, AlongAxis(index, normal, x->shape().size()));
  Shape shape(x->shape().begin(), x->shape().begin() + normal);
  shape.insert(shape.end(), index->shape().begin(), index->shape().end());
  shape.insert(shape.end(), x->shape().begin() + normal + 1, x->shape().end());
  return Reshape(GatherElements(x, along, normal), shape);
}

const Node* Builder::Scatter(const Node* x, const Node* index, const Node* values, int64_t axis,
                             ir::ScatterMode mode) {
  const int64_t normal = NormalAxis(axis, x->shape().size());
  const Node* along = Reshape(index, AlongAxis(index, normal, x->shape().size()));
  Shape shape = x->shape();
  shape[normal] = ir::NumElements(index->shape());
  return ScatterElements(x, along, Reshape(values, shape), normal, mode);
}

}  // namespace kiln::ops
