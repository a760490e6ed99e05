#include "compiler/partition/tensor_maker.h"

#include <utility>

namespace kiln::partition {

using ir::Node;
using ir::Op;

const Node* TensorMaker::Reshape(const Node* x, ir::Shape shape) {
  if (x->shape() == shape) return x;
  const ir::DType dtype = x->dtype();
  return context_.Get(Op::kReshape, dtype, std::move(shape), {x});
}

const Node* TensorMaker::Permute(const Node* x, const Ints& axes) {
  ir::Shape shape;
  bool changes = false;
  for (size_t i = 0; i < axes.size(); ++i) {
    shape.push_back(x->shape()[axes[i]]);
    changes = changes || axes[i] != static_cast<int64_t>(i);
  }
  if (!changes) return x;
  return context_.Get(Op::kPermute, x->dtype(), std::move(shape), {x}, ir::IntsAttr{axes});
}

const Node* TensorMaker::MoveAxis(const Node* x, int64_t from, int64_t to) {
  Ints axes;
  for (int64_t i = 0; i < static_cast<int64_t>(x->shape().size()); ++i) {
    if (i != from) axes.push_back(i);
  }
  axes.insert(axes.begin() + to, from);
  return Permute(x, axes);
}

const Node* TensorMaker::Expand(const Node* x, ir::Shape shape) {
  if (x->shape() == shape) return x;
  return context_.Get(Op::kExpand, x->dtype(), std::move(shape), {x});
}

const Node* TensorMaker::Pad(const Node* x, const Ints& padding) {
  ir::Shape shape = x->shape();
  bool changes = false;
  for (size_t i = 0; i < shape.size(); ++i) {
    shape[i] += padding[2 * i] + padding[2 * i + 1];
    changes = changes || shape[i] != x->shape()[i];
  }
  if (!changes) return x;
  return context_.Get(Op::kPad, x->dtype(), std::move(shape), {x}, ir::IntsAttr{padding});
}

const Node* TensorMaker::Shrink(const Node* x, const Ints& bounds) {
  ir::Shape shape;
  for (size_t i = 0; i < x->shape().size(); ++i) {
    shape.push_back(bounds[2 * i + 1] - bounds[2 * i]);
  }
  if (shape == x->shape()) return x;
  return context_.Get(Op::kShrink, x->dtype(), std::move(shape), {x}, ir::IntsAttr{bounds});
}

const Node* TensorMaker::Reduce(Op op, const Node* x, const Ints& axes) {
  if (axes.empty()) return x;
  ir::Shape shape = x->shape();
  for (const int64_t axis : axes) shape[axis] = 1;
  return context_.Get(op, x->dtype(), std::move(shape), {x}, ir::IntsAttr{axes});
}

const Node* TensorMaker::Zeros(ir::DType dtype, const ir::Shape& shape) {
  const Node* zero =
      context_.Get(Op::kConst, dtype, {}, {},
                   ir::IsFloat(dtype) ? ir::ConstValue::Float(0) : ir::ConstValue::Int(0));
  // The canonical form of such tensors (graph/splat.h), so that equal ones are one node.
  return Expand(Reshape(zero, ir::Shape(shape.size(), 1)), shape);
}

}  // namespace kiln::partition
