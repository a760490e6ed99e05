#include "compiler/shard/fit.h"

#include <algorithm>
#include <vector>

#include "compiler/shard/padded_shape.h"
#include "compiler/shard/rules.h"
#include "proto/check/check.h"

namespace kiln::shard {
namespace {

using ir::Node;
using ir::Op;
using ir::Shape;

// Deeper expressions are cut and padded instead: the rebuilding is recursive.
constexpr int kDepthMax = 256;

// Returns whether a pad or a shrink changes only the ends, so that elements keep their positions.
bool KeepsBeginnings(const Node* node) {
  const std::vector<int64_t>& values = ir::IntsOf(node);
  for (size_t i = 0; i < values.size(); i += 2) {
    if (values[i] != 0) return false;
  }
  return true;
}

}  // namespace

const Node* Fitter::Fit(const Node* x, const Shape& shape) {
  KILN_CHECK_EQ(x->shape().size(), shape.size());
  if (const Node* anew = MadeAnew(x, shape, 0)) return anew;
  std::vector<int64_t> bounds;
  std::vector<int64_t> padding;
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    const int64_t kept = std::min(shape[dim], x->shape()[dim]);
    bounds.insert(bounds.end(), {0, kept});
    padding.insert(padding.end(), {0, shape[dim] - kept});
  }
  return builder_.Pad(builder_.Shrink(x, bounds), padding);
}

const Node* Fitter::MadeAnew(const Node* x, const Shape& shape, int depth) {
  if (x->shape() == shape) return x;
  if (depth == kDepthMax) return nullptr;
  const std::pair<const Node*, Shape> key(x, shape);
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  const Node* made = Compute(x, shape, depth + 1);
  KILN_CHECK(made == nullptr || made->shape() == shape) << ir::Name(x->op());
  KILN_CHECK(made == nullptr || made->dtype() == x->dtype()) << ir::Name(x->op());
  known_[key] = made;
  return made;
}

const Node* Fitter::Compute(const Node* x, const Shape& shape, int depth) {
  switch (x->op()) {
    case Op::kIota:
      return builder_.Iota(x->dtype(), shape, x->attr<ir::IntAttr>().value);
    case Op::kExpand:
      return Expanded(x, shape);
    case Op::kPermute:
      return Permuted(x, shape, depth);
    case Op::kReshape:
      return Reshaped(x, shape, depth);
    case Op::kPad:
    case Op::kShrink:
      return KeepsBeginnings(x) && x->operand(0)->shape() == shape ? x->operand(0) : nullptr;
    default:
      return RuleOf(x->op()) == RuleKind::kElementwise ? Elementwise(x, shape, depth) : nullptr;
  }
}

const Node* Fitter::Elementwise(const Node* x, const Shape& shape, int depth) {
  // A contiguous value is already stored; do not compute it again.
  if (x->op() == Op::kContiguous) return nullptr;
  std::vector<const Node*> operands;
  for (const Node* operand : x->operands()) {
    operands.push_back(MadeAnew(operand, shape, depth));
    if (operands.back() == nullptr) return nullptr;
  }
  return builder_.context().Get(x->op(), x->dtype(), shape, std::move(operands), x->attribute());
}

const Node* Fitter::Expanded(const Node* x, const Shape& shape) {
  const Shape& below = x->operand(0)->shape();
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] != x->shape()[dim] && below[dim] != 1) return nullptr;
  }
  return builder_.Expand(x->operand(0), shape);
}

const Node* Fitter::Permuted(const Node* x, const Shape& shape, int depth) {
  const std::vector<int64_t>& order = ir::IntsOf(x);
  Shape below(shape.size());
  for (size_t dim = 0; dim < shape.size(); ++dim) below[order[dim]] = shape[dim];
  const Node* operand = MadeAnew(x->operand(0), below, depth);
  return operand == nullptr ? nullptr : builder_.Permute(operand, order);
}

const Node* Fitter::Reshaped(const Node* x, const Shape& shape, int depth) {
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] < x->shape()[dim]) return nullptr;
  }
  const auto below = PaddedReshape(x->shape(), shape, x->operand(0)->shape());
  if (!below.has_value()) return nullptr;
  const Node* operand = MadeAnew(x->operand(0), *below, depth);
  return operand == nullptr ? nullptr : builder_.Reshape(operand, shape);
}

}  // namespace kiln::shard
