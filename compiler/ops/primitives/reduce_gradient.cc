#include "compiler/ops/builder.h"
#include "compiler/ops/primitives/factors.h"
#include "compiler/ops/primitives/gradients.h"

namespace kiln::ops {

using ir::Node;
using ir::Op;

Adjoints SumGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Expand(upstream, node->operand(0)->shape())};
}

Adjoints ProdGradient(Builder& b, const Node* node, const Node* upstream) {
  const std::vector<int64_t>& axes = node->attr<ir::IntsAttr>().values;
  const Factors own = FactorsOf(b, node->operand(0));
  const Factors all = {b.Prod(own.nonzero, axes, true), b.Sum(own.zeros, axes, true),
                       b.Sum(own.vanishing, axes, true)};
  return {b.Mul(upstream, ProductOfOthers(b, all, own))};
}

Adjoints MaxGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* x = node->operand(0);
  const std::vector<int64_t>& axes = node->attr<ir::IntsAttr>().values;
  const Node* zero = b.Const(x->dtype(), 0);
  // All elements equal to the maximum share its gradient equally, like PyTorch's amax. NaN elements
  // count as equal, since a gradient of 0 would hide them.
  const Node* largest = b.Binary(Op::kOr, b.Equal(x, node), b.Binary(Op::kCmpNe, x, x));
  const Node* count = b.Sum(b.Where(largest, b.Const(x->dtype(), 1), zero), axes, true);
  return {b.Where(largest, b.Div(upstream, count), zero)};
}

}  // namespace kiln::ops
