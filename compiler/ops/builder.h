// The functions with which expansions and gradients are written: they make legal tensor-level
// nodes.
//
// Requires legal operands: shapes that do not match end the process, so check user input before
// (rules/infer.h). Binary ops broadcast and promote by inserting reshape, expand and cast; a
// movement that changes nothing returns the operand itself.
#ifndef KILN_COMPILER_OPS_BUILDER_H_
#define KILN_COMPILER_OPS_BUILDER_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/ops/form_sizes.h"
#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Not thread-safe, like its Context.
class Builder {
 public:
  using Axes = absl::Span<const int64_t>;  // may be negative; then counted from the end

  // `context` and `sizes` must outlive the Builder.
  explicit Builder(ir::Context& context, FormSizes* sizes = nullptr)
      : context_(context), sizes_(sizes) {}
  ir::Context& context() { return context_; }

  // Returns the range of a size that selects the form of an expansion; without FormSizes the size
  // itself. An expansion asks for each of its sizes, whatever they are.
  SizeRange RangeOf(int64_t size) {
    return sizes_ == nullptr ? SizeRange{size, size} : sizes_->Next(size);
  }

  // Returns INVALID_ARGUMENT once a node's shape has exceeded the limits of CheckShape, which the
  // product in a huge matmul can. Nodes made after that are unusable.
  const absl::Status& status() const { return status_; }

  // Sources. A constant is rounded to its dtype; `Full` is an expanded constant.
  const ir::Node* Const(ir::DType dtype, double value);
  const ir::Node* ConstInt(ir::DType dtype, int64_t value);
  const ir::Node* Full(ir::DType dtype, const ir::Shape& shape, double value);
  const ir::Node* FullLike(const ir::Node* x, double value);
  const ir::Node* Input(int64_t index, ir::DType dtype, const ir::Shape& shape);
  const ir::Node* Iota(ir::DType dtype, const ir::Shape& shape, int64_t axis);

  // Elementwise.
  const ir::Node* Unary(ir::Op op, const ir::Node* x);
  const ir::Node* Binary(ir::Op op, const ir::Node* a, const ir::Node* b);
  const ir::Node* Where(const ir::Node* condition, const ir::Node* a, const ir::Node* b);
  const ir::Node* Cast(const ir::Node* x, ir::DType dtype);
  const ir::Node* Bitcast(const ir::Node* x, ir::DType dtype);

  const ir::Node* Neg(const ir::Node* x) { return Unary(ir::Op::kNeg, x); }
  const ir::Node* Reciprocal(const ir::Node* x) { return Unary(ir::Op::kReciprocal, x); }
  const ir::Node* Sqrt(const ir::Node* x) { return Unary(ir::Op::kSqrt, x); }
  const ir::Node* Exp2(const ir::Node* x) { return Unary(ir::Op::kExp2, x); }
  const ir::Node* Log2(const ir::Node* x) { return Unary(ir::Op::kLog2, x); }
  const ir::Node* Sin(const ir::Node* x) { return Unary(ir::Op::kSin, x); }
  const ir::Node* Trunc(const ir::Node* x) { return Unary(ir::Op::kTrunc, x); }
  const ir::Node* Not(const ir::Node* x) { return Unary(ir::Op::kNot, x); }
  const ir::Node* Add(const ir::Node* a, const ir::Node* b) { return Binary(ir::Op::kAdd, a, b); }
  const ir::Node* Sub(const ir::Node* a, const ir::Node* b) { return Binary(ir::Op::kSub, a, b); }
  const ir::Node* Mul(const ir::Node* a, const ir::Node* b) { return Binary(ir::Op::kMul, a, b); }
  const ir::Node* Div(const ir::Node* a, const ir::Node* b) { return Binary(ir::Op::kDiv, a, b); }
  const ir::Node* Less(const ir::Node* a, const ir::Node* b) {
    return Binary(ir::Op::kCmpLt, a, b);
  }
  const ir::Node* Equal(const ir::Node* a, const ir::Node* b) {
    return Binary(ir::Op::kCmpEq, a, b);
  }
  // With a constant of the tensor's dtype.
  const ir::Node* Add(const ir::Node* a, double b) { return Add(a, Const(a->dtype(), b)); }
  const ir::Node* Mul(const ir::Node* a, double b) { return Mul(a, Const(a->dtype(), b)); }
  // a > b.
  const ir::Node* Greater(const ir::Node* a, double b) { return Less(Const(a->dtype(), b), a); }
  const ir::Node* Exp(const ir::Node* x);
  const ir::Node* Log(const ir::Node* x);
  const ir::Node* Cos(const ir::Node* x);

  // Reductions; an empty list of axes reduces nothing. Axes of size 1 add no work.
  const ir::Node* Reduce(ir::Op op, const ir::Node* x, Axes axes, bool keepdims = false);
  const ir::Node* Sum(const ir::Node* x, Axes axes, bool keepdims = false) {
    return Reduce(ir::Op::kReduceSum, x, axes, keepdims);
  }
  const ir::Node* Prod(const ir::Node* x, Axes axes, bool keepdims = false) {
    return Reduce(ir::Op::kReduceProd, x, axes, keepdims);
  }
  const ir::Node* Max(const ir::Node* x, Axes axes, bool keepdims = false) {
    return Reduce(ir::Op::kReduceMax, x, axes, keepdims);
  }
  // Sums over the dimensions in which broadcasting repeated x: the adjoint of BroadcastTo.
  const ir::Node* SumTo(const ir::Node* x, const ir::Shape& shape);

  // Movement. See ir::Op for the meaning of the lists.
  const ir::Node* Reshape(const ir::Node* x, const ir::Shape& shape);
  const ir::Node* Permute(const ir::Node* x, Axes axes);
  const ir::Node* Transpose(const ir::Node* x, int64_t axis_a, int64_t axis_b);
  const ir::Node* Unsqueeze(const ir::Node* x, int64_t axis);         // axis of the result
  const ir::Node* Expand(const ir::Node* x, const ir::Shape& shape);  // same rank
  const ir::Node* BroadcastTo(const ir::Node* x, const ir::Shape& shape);
  const ir::Node* Pad(const ir::Node* x, absl::Span<const int64_t> padding);
  // The parts, at least one, one after the other along `axis`. Chooses between them: a sum of parts
  // that are padded with zeros would turn -0.0 into 0.0.
  const ir::Node* Concat(absl::Span<const ir::Node* const> parts, int64_t axis);
  const ir::Node* Shrink(const ir::Node* x, absl::Span<const int64_t> bounds);
  // Elements [begin, end) of one axis.
  const ir::Node* Slice(const ir::Node* x, int64_t axis, int64_t begin, int64_t end);
  const ir::Node* Flip(const ir::Node* x, Axes axes);
  const ir::Node* Window(const ir::Node* x, int64_t axis, int64_t size, int64_t stride,
                         int64_t dilation);
  const ir::Node* Unwindow(const ir::Node* x, int64_t axis, int64_t length, int64_t stride,
                           int64_t dilation);

  // result[…, k] = x[…, k, k]: the diagonal of the last two dimensions, of equal size, using only
  // views.
  const ir::Node* Diagonal(const ir::Node* x);

  // Indexed and structure.
  const ir::Node* GatherElements(const ir::Node* x, const ir::Node* index, int64_t axis);
  const ir::Node* ScatterElements(const ir::Node* x, const ir::Node* index, const ir::Node* values,
                                  int64_t axis, ir::ScatterMode mode);
  // x[…, index, …] with the index's dimensions in place of the axis, and its adjoint.
  const ir::Node* Gather(const ir::Node* x, const ir::Node* index, int64_t axis);
  const ir::Node* Scatter(const ir::Node* x, const ir::Node* index, const ir::Node* values,
                          int64_t axis, ir::ScatterMode mode);
  const ir::Node* Contiguous(const ir::Node* x) { return Unary(ir::Op::kContiguous, x); }
  const ir::Node* Detach(const ir::Node* x) { return Unary(ir::Op::kDetach, x); }
  const ir::Node* Send(const ir::Node* x, int64_t source, int64_t target);
  const ir::Node* Shard(const ir::Node* x, absl::Span<const int64_t> spec);
  // Returns y, adding `derivative` as the derivative of its elements with respect to x's, besides
  // the derivative that y already has. All three broadcast; y and derivative have x's dtype.
  const ir::Node* WithDerivative(const ir::Node* y, const ir::Node* x, const ir::Node* derivative);

 private:
  const ir::Node* Make(ir::Op op, ir::DType dtype, ir::Shape shape,
                       std::vector<const ir::Node*> operands, ir::Attribute attribute = {});

  ir::Context& context_;
  FormSizes* const sizes_;
  absl::Status status_;
};

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BUILDER_H_
