#include "compiler/shard/mask.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "compiler/ir/reshape_groups.h"
#include "compiler/ops/round.h"
#include "compiler/shard/rules.h"

namespace kiln::shard {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ir::Shape;

const Node* IdentityOf(ops::Builder& builder, Op reduction, DType dtype) {
  constexpr double kLowest = -std::numeric_limits<double>::infinity();
  if (reduction == Op::kReduceProd) return builder.Const(dtype, 1);
  if (reduction != Op::kReduceMax) return builder.Const(dtype, 0);
  if (ir::IsFloat(dtype)) return builder.Const(dtype, kLowest);
  return builder.ConstInt(dtype, ir::IsSigned(dtype) ? ops::FloatToInteger(dtype, kLowest) : 0);
}

bool RepeatsWhatItShows(const Node* factor) {
  while (RuleOf(factor->op()) == RuleKind::kMovement || factor->op() == Op::kCast) {
    const Node* operand = factor->operand(0);
    if (factor->op() == Op::kExpand &&
        ir::NumElements(factor->shape()) > ir::NumElements(operand->shape())) {
      return true;
    }
    factor = operand;
  }
  return false;
}

// Returns whether the movement leaves this dimension of its result unchanged. The dimension is then
// the operand's of the same number.
bool LeavesAlone(const Node* node, int64_t dim) {
  const std::vector<int64_t>& values = ir::IntsOf(node);
  switch (node->op()) {
    case Op::kPad:
      return values[2 * dim] == 0 && values[2 * dim + 1] == 0;
    case Op::kShrink:
      return node->shape()[dim] == node->operand(0)->shape()[dim];
    case Op::kFlip:
      return std::find(values.begin(), values.end(), dim) == values.end();
    case Op::kWindow:
    case Op::kUnwindow:
      return dim != values[0] && dim + 1 < static_cast<int64_t>(node->shape().size());
    default:
      return false;
  }
}

}  // namespace

bool IsOuterProduct(const Node* node) {
  return node->op() == Op::kMul && RepeatsWhatItShows(node->operand(0)) &&
         RepeatsWhatItShows(node->operand(1));
}

const Node* Masker::Identity(const Node* x, int64_t dim, int64_t size, Op reduction) {
  if (reduction == Op::kReduceSum) return Zero(x, dim, size);
  return Replace(x, dim, size, IdentityOf(builder_, reduction, x->dtype()));
}

const Node* Masker::Replace(const Node* x, int64_t dim, int64_t size, const Node* value) {
  Shape along(x->shape().size(), 1);
  along[dim] = x->shape()[dim];
  const bool is_short = along[dim] <= std::numeric_limits<int32_t>::max();
  const DType dtype = is_short ? DType::kInt32 : DType::kInt64;
  const Node* is_there =
      builder_.Less(builder_.Iota(dtype, along, dim), builder_.ConstInt(dtype, size));
  return builder_.Where(is_there, x, value);
}

const Node* Masker::ZeroHere(const Node* x, int64_t dim, int64_t size) {
  return Replace(x, dim, size, IdentityOf(builder_, Op::kReduceSum, x->dtype()));
}

const Node* Masker::Zero(const Node* x, int64_t dim, int64_t size) {
  const std::tuple<const Node*, int64_t, int64_t> key(x, dim, size);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Node* zeroed = ZeroBelow(x, dim, size);
  known_[key] = zeroed;
  return zeroed;
}

// Puts the selection below views and products, so that the selected value is no larger than the
// stored one and a sum of products stays one.
const Node* Masker::ZeroBelow(const Node* x, int64_t dim, int64_t size) {
  switch (x->op()) {
    case Op::kMul:
      if (!IsOuterProduct(x)) return ZeroHere(x, dim, size);
      return builder_.Mul(Zero(x->operand(0), dim, size), Zero(x->operand(1), dim, size));
    case Op::kCast:
      return builder_.Cast(Zero(x->operand(0), dim, size), x->dtype());
    case Op::kPermute:
      return builder_.Permute(Zero(x->operand(0), ir::IntsOf(x)[dim], size), ir::IntsOf(x));
    case Op::kExpand:
      return ZeroExpand(x, dim, size);
    case Op::kReshape:
      return ZeroReshape(x, dim, size);
    case Op::kPad:
    case Op::kShrink:
    case Op::kFlip:
    case Op::kWindow:
    case Op::kUnwindow:
      if (!LeavesAlone(x, dim)) return ZeroHere(x, dim, size);
      return builder_.context().WithOperands(x, {Zero(x->operand(0), dim, size)});
    default:
      return ZeroHere(x, dim, size);
  }
}

const Node* Masker::ZeroExpand(const Node* x, int64_t dim, int64_t size) {
  const Node* operand = x->operand(0);
  if (operand->shape()[dim] == x->shape()[dim]) {
    return builder_.Expand(Zero(operand, dim, size), x->shape());
  }
  Shape longer = operand->shape();
  longer[dim] = x->shape()[dim];
  return builder_.Expand(ZeroHere(builder_.Expand(operand, longer), dim, size), x->shape());
}

const Node* Masker::ZeroReshape(const Node* x, int64_t dim, int64_t size) {
  const Node* operand = x->operand(0);
  const Shape& from = operand->shape();
  for (const ir::ReshapeGroup& group : ir::ReshapeGroups(from, x->shape())) {
    if (static_cast<size_t>(dim) < group.to || static_cast<size_t>(dim) >= group.to_end) continue;
    size_t first = group.from;
    while (first < group.from_end && from[first] == 1) ++first;
    if (first == group.from_end) break;
    int64_t kept = size;
    for (size_t i = group.to; i < group.to_end; ++i) {
      if (static_cast<int64_t>(i) < dim && x->shape()[i] != 1) return ZeroHere(x, dim, size);
      if (static_cast<int64_t>(i) > dim) kept *= x->shape()[i];
    }
    int64_t inner = 1;
    for (size_t i = first + 1; i < group.from_end; ++i) inner *= from[i];
    if (kept % inner != 0) break;
    const Node* zeroed = Zero(operand, static_cast<int64_t>(first), kept / inner);
    return builder_.Reshape(zeroed, x->shape());
  }
  return ZeroHere(x, dim, size);
}

}  // namespace kiln::shard
