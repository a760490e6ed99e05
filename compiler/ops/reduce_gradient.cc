#include "compiler/ops/builder.h"
#include "compiler/ops/gradients.h"

namespace kiln::ops {

using ir::Node;
using ir::Op;

Adjoints SumGradient(Builder& b, const Node* node, const Node* upstream) {
  return {b.Expand(upstream, node->operand(0)->shape())};
}

// The product of all other elements: with one zero among them only the zero's own is not zero.
Adjoints ProdGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* x = node->operand(0);
  const std::vector<int64_t>& axes = node->attr<ir::IntsAttr>().values;
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* one = b.Const(x->dtype(), 1);
  const Node* is_zero = b.Equal(x, zero);
  const Node* zeros = b.Sum(b.Where(is_zero, one, zero), axes, true);
  const Node* others = b.Prod(b.Where(is_zero, one, x), axes, true);
  const Node* at_zero = b.Where(b.Equal(zeros, one), others, zero);
  const Node* elsewhere =
      b.Div(b.Where(b.Equal(zeros, zero), others, zero), b.Where(is_zero, one, x));
  return {b.Mul(upstream, b.Where(is_zero, at_zero, elsewhere))};
}

Adjoints MaxGradient(Builder& b, const Node* node, const Node* upstream) {
  const Node* x = node->operand(0);
  const std::vector<int64_t>& axes = node->attr<ir::IntsAttr>().values;
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* largest = b.Equal(x, node);
  const Node* count = b.Sum(b.Where(largest, b.Const(x->dtype(), 1), zero), axes, true);
  return {b.Where(largest, b.Div(upstream, count), zero)};
}

}  // namespace kiln::ops
