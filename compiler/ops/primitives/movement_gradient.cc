#include "compiler/ops/builder.h"
#include "compiler/ops/primitives/gradients.h"

namespace kiln::ops {
namespace {

using ir::IntsAttr;
using ir::Node;
using ir::Shape;

// Returns x without its last dimension if x is constant along it, else null.
const Node* WithoutLast(Builder& b, const Node* x) {
  const Node* one = x;
  Shape shape = x->shape();
  if (shape.back() != 1) {
    if (x->op() != ir::Op::kExpand || x->operand(0)->shape().back() != 1) return nullptr;
    shape.back() = 1;
    one = b.Expand(x->operand(0), shape);
  }
  shape.pop_back();
  return b.Reshape(one, shape);
}

}  // namespace

Adjoints ReshapeGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Reshape(upstream, node->operand(0)->shape())};
}

Adjoints PermuteGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& axes = ir::IntsOf(node);
  // A permutation's adjoint is its inverse.
  std::vector<int64_t> inverse(axes.size());
  for (size_t i = 0; i < axes.size(); ++i) inverse[axes[i]] = static_cast<int64_t>(i);
  return {b.Permute(upstream, inverse)};
}

Adjoints ExpandGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.SumTo(upstream, node->operand(0)->shape())};
}

Adjoints PadGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& padding = ir::IntsOf(node);
  std::vector<int64_t> bounds;
  for (size_t i = 0; i < node->shape().size(); ++i) {
    bounds.insert(bounds.end(), {padding[2 * i], node->shape()[i] - padding[2 * i + 1]});
  }
  return {b.Shrink(upstream, bounds)};
}

Adjoints ShrinkGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& bounds = ir::IntsOf(node);
  const Shape& shape = node->operand(0)->shape();
  std::vector<int64_t> padding;
  for (size_t i = 0; i < shape.size(); ++i) {
    padding.insert(padding.end(), {bounds[2 * i], shape[i] - bounds[2 * i + 1]});
  }
  return {b.Pad(upstream, padding)};
}

Adjoints FlipGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Flip(upstream, ir::IntsOf(node))};
}

Adjoints WindowGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& window = ir::IntsOf(node);  // axis, size, stride, dilation
  const int64_t length = node->operand(0)->shape()[window[0]];
  return {b.Sum(b.Unwindow(upstream, window[0], length, window[2], window[3]), {-1})};
}

// The windows over upstream have window elements in a second dimension besides upstream's own, and
// only the diagonal of the two counts. If upstream is the same for all elements of a window, as in
// a transposed convolution, windows over one of them are the result.
Adjoints UnwindowGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& unwindow = ir::IntsOf(node);  // axis, length, stride, dilation
  const int64_t size = node->shape().back();
  if (const Node* one = WithoutLast(b, upstream)) {
    return {b.Window(one, unwindow[0], size, unwindow[2], unwindow[3])};
  }
  return {b.Diagonal(b.Window(upstream, unwindow[0], size, unwindow[2], unwindow[3]))};
}

Adjoints WithDerivativeGradient(Builder& b, const Node* node, const Node* upstream) {
  return {upstream, b.Mul(upstream, node->operand(2)), nullptr};
}

Adjoints ShardGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Shard(upstream, ir::IntsOf(node))};
}

Adjoints SendGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& devices = ir::IntsOf(node);
  return {b.Send(upstream, devices[1], devices[0])};
}

Adjoints ContiguousGradient(Builder& b, const Node* node, const Node* upstream) {
  return {upstream};
}

}  // namespace kiln::ops
