#include "compiler/kernel/movement.h"

#include <utility>

#include "absl/algorithm/container.h"
#include "absl/types/span.h"

namespace kiln::kernel {

using ir::Node;
using ir::Op;

namespace {

// Flattens only as far as the shapes require: if dimensions [i, j) of one shape hold the same
// elements as [k, l) of the other, these groups are converted separately, so that indices of
// independent dimensions never mix.
Point Reshape(IndexMath& math, const Node* node, const Point& at) {
  const ir::Shape& from = node->shape();
  const ir::Shape& to = node->operand(0)->shape();
  Point inner{{}, at.valid};
  size_t i = 0;
  size_t j = 0;
  while (i < from.size() || j < to.size()) {
    const size_t from_begin = i;
    const size_t to_begin = j;
    int64_t from_elements = i < from.size() ? from[i++] : 1;
    int64_t to_elements = j < to.size() ? to[j++] : 1;
    while (from_elements != to_elements && (i < from.size() || j < to.size())) {
      if (j == to.size() || (from_elements < to_elements && i < from.size())) {
        from_elements *= from[i++];
      } else {
        to_elements *= to[j++];
      }
    }
    const auto digits = absl::MakeConstSpan(at.index).subspan(from_begin, i - from_begin);
    const auto extents = absl::MakeConstSpan(from).subspan(from_begin, i - from_begin);
    const auto wanted = absl::MakeConstSpan(to).subspan(to_begin, j - to_begin);
    for (const Node* index : math.Unflatten(math.Flatten(digits, extents), wanted, &inner.valid)) {
      inner.index.push_back(index);
    }
  }
  return inner;
}

Point Permute(const Node* node, const Point& at) {
  Point inner{at.index, at.valid};
  for (size_t i = 0; i < at.index.size(); ++i) inner.index[ir::IntsOf(node)[i]] = at.index[i];
  return inner;
}

Point Expand(IndexMath& math, const Node* node, const Point& at) {
  Point inner = at;
  for (size_t i = 0; i < at.index.size(); ++i) {
    if (node->operand(0)->shape()[i] == 1) inner.index[i] = math.Constant(0);
  }
  return inner;
}

Point Pad(IndexMath& math, const Node* node, const Point& at) {
  Point inner = at;
  for (size_t i = 0; i < at.index.size(); ++i) {
    inner.index[i] = math.Sub(at.index[i], math.Constant(ir::IntsOf(node)[2 * i]));
    math.Require(inner.valid, inner.index[i], 0, node->operand(0)->shape()[i]);
  }
  return inner;
}

Point Shrink(IndexMath& math, const Node* node, const Point& at) {
  Point inner = at;
  for (size_t i = 0; i < at.index.size(); ++i) {
    inner.index[i] = math.Add(at.index[i], math.Constant(ir::IntsOf(node)[2 * i]));
  }
  return inner;
}

Point Flip(IndexMath& math, const Node* node, const Point& at) {
  Point inner = at;
  for (const int64_t axis : ir::IntsOf(node)) {
    inner.index[axis] = math.Sub(math.Constant(node->shape()[axis] - 1), at.index[axis]);
  }
  return inner;
}

Point Window(IndexMath& math, const Node* node, const Point& at) {
  const int64_t axis = ir::IntsOf(node)[0];
  const int64_t stride = ir::IntsOf(node)[2];
  const int64_t dilation = ir::IntsOf(node)[3];
  Point inner = at;
  // The last dimension of the result is the position within the window.
  const Node* offset = inner.index.back();
  inner.index.pop_back();
  inner.index[axis] = math.Add(math.Mul(inner.index[axis], stride), math.Mul(offset, dilation));
  return inner;
}

Point Unwindow(IndexMath& math, const Node* node, const Point& at) {
  const int64_t axis = ir::IntsOf(node)[0];
  const int64_t stride = ir::IntsOf(node)[2];
  const int64_t dilation = ir::IntsOf(node)[3];
  Point inner = at;
  const Node* start = math.Sub(at.index[axis], math.Mul(at.index.back(), dilation));
  inner.index[axis] = math.Div(start, stride);
  math.Require(inner.valid, inner.index[axis], 0, node->operand(0)->shape()[axis]);
  // Windows start at multiples of the stride only; elsewhere the result is zero.
  math.Require(inner.valid, math.Mod(start, stride), 0, 1);
  return inner;
}

}  // namespace

bool IsMovement(Op op) {
  static constexpr Op kOps[] = {Op::kReshape,    Op::kPermute, Op::kExpand, Op::kPad,
                                Op::kShrink,     Op::kFlip,    Op::kWindow, Op::kUnwindow,
                                Op::kContiguous, Op::kMutable};
  return absl::c_linear_search(kOps, op);
}

Point MoveThrough(IndexMath& math, const Node* node, const Point& at) {
  switch (node->op()) {
    case Op::kReshape:
      return Reshape(math, node, at);
    case Op::kPermute:
      return Permute(node, at);
    case Op::kExpand:
      return Expand(math, node, at);
    case Op::kPad:
      return Pad(math, node, at);
    case Op::kShrink:
      return Shrink(math, node, at);
    case Op::kFlip:
      return Flip(math, node, at);
    case Op::kWindow:
      return Window(math, node, at);
    case Op::kUnwindow:
      return Unwindow(math, node, at);
    default:
      return at;
  }
}

}  // namespace kiln::kernel
