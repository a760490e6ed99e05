#include "compiler/variables/extents.h"

#include <algorithm>
#include <limits>

namespace kiln::variables {

using ir::DType;
using ir::Node;
using ir::Op;

Extents::Extents(ops::Builder& builder, const GeneralGraph& general)
    : b_(builder),
      derived_(general.derived),
      variables_(WithDerived(general.variables, general.derived)) {
  const auto count = static_cast<int64_t>(general.variables.size());
  const auto input = static_cast<int64_t>(general.inputs.size());
  const Node* values = b_.Input(input, DType::kInt64, {count});
  for (int64_t i = 0; i < count; ++i) {
    const Node* value = b_.Reshape(b_.Slice(values, 0, i, i + 1), {});
    const Node* low = b_.ConstInt(DType::kInt64, variables_[i].min);
    const Node* high = b_.ConstInt(DType::kInt64, variables_[i].max);
    // Values outside their bounds are refused before the run; the clamp is only for the proof.
    scalars_.push_back(b_.Binary(Op::kMin, b_.Binary(Op::kMax, value, low), high));
  }
  for (const Derived& derived : derived_) {
    const Node* left = scalars_[derived.left];
    if (derived.kind == Derived::Kind::kProduct) {
      scalars_.push_back(b_.Mul(left, scalars_[derived.right]));
    } else {
      const Node* shifted = b_.Add(left, b_.ConstInt(DType::kInt64, derived.shift));
      scalars_.push_back(
          b_.Binary(Op::kIDiv, shifted, b_.ConstInt(DType::kInt64, derived.divisor)));
    }
  }
}

int64_t Extents::Capacity(const Affine& size) const {
  return std::max<int64_t>(0, Most(size, variables_));
}

ir::Shape Extents::Capacity(Dims dims) const {
  ir::Shape shape;
  for (const Affine& size : dims) shape.push_back(Capacity(size));
  return shape;
}

const Node* Extents::Scalar(const Affine& number) {
  const Node* sum = nullptr;
  for (size_t i = 0; i < number.coefficients.size(); ++i) {
    if (number.coefficients[i] == 0) continue;
    const Node* term = scalars_[i];
    if (number.coefficients[i] != 1) {
      term = b_.Mul(term, b_.ConstInt(DType::kInt64, number.coefficients[i]));
    }
    sum = sum == nullptr ? term : b_.Add(sum, term);
  }
  const Node* constant = b_.ConstInt(DType::kInt64, number.constant);
  if (sum == nullptr) return constant;
  return number.constant == 0 ? sum : b_.Add(sum, constant);
}

// float64 holds every length exactly. A quotient of two whole numbers rounded to float64 first and
// then to float32 equals the one rounded to float32 directly (Figueroa, "When is double rounding
// innocuous?", 1995).
const Node* Extents::Constant(const Formula& formula, DType dtype) {
  const Node* number = Scalar(formula.number);
  if (formula.kind == Formula::Kind::kAffine) return b_.Cast(number, dtype);
  const Node* whole = b_.Cast(number, DType::kFloat64);
  return b_.Cast(b_.Div(b_.Const(DType::kFloat64, 1), whole), dtype);
}

const Node* Extents::Index(int64_t capacity, size_t axis, size_t rank) {
  ir::Shape shape(rank, 1);
  shape[axis] = capacity;
  return b_.Iota(DType::kInt64, shape, static_cast<int64_t>(axis));
}

const Node* Extents::Masked(const Node* x, Dims dims, absl::Span<const int64_t> axes,
                            const Node* fill) {
  const Node* within = nullptr;
  for (const int64_t axis : axes) {
    if (dims[axis].is_fixed()) continue;
    const Node* before =
        b_.Less(Index(Capacity(dims[axis]), axis, dims.size()), Scalar(dims[axis]));
    within = within == nullptr ? before : b_.Binary(Op::kAnd, within, before);
  }
  return within == nullptr ? x : b_.Where(within, x, fill);
}

const Node* Extents::Resized(const Node* x, int64_t axis, int64_t capacity) {
  const int64_t size = x->shape()[axis];
  if (capacity < size) return b_.Slice(x, axis, 0, capacity);
  std::vector<int64_t> padding(2 * x->shape().size(), 0);
  padding[2 * axis + 1] = capacity - size;
  return b_.Pad(x, padding);
}

const Node* Extents::Moved(const Node* x, int64_t axis, const Affine& offset, int64_t capacity) {
  // The numbers of a movement are fixed at compile time; a gather reads its positions from data.
  if (!offset.is_fixed()) {
    return b_.Gather(x, b_.Sub(Index(capacity, 0, 1), Scalar(offset)), axis);
  }
  const Node* moved = x;
  if (offset.constant > 0) {
    std::vector<int64_t> padding(2 * x->shape().size(), 0);
    padding[2 * axis] = offset.constant;
    moved = b_.Pad(x, padding);
  } else {
    const int64_t size = x->shape()[axis];
    // A negative offset drops that many elements at the front.
    moved = b_.Slice(x, axis, std::min(-offset.constant, size), size);
  }
  return Resized(moved, axis, capacity);
}

const Node* Neutral(ops::Builder& builder, Op reduction, DType dtype) {
  if (reduction == Op::kReduceSum) return builder.Const(dtype, 0);
  if (reduction == Op::kReduceProd) return builder.Const(dtype, 1);
  if (dtype == DType::kBool) return builder.Const(dtype, 0);
  // The lowest value: minus infinity converted to the integer dtype.
  return builder.Const(dtype, -std::numeric_limits<double>::infinity());
}

}  // namespace kiln::variables
