#include "compiler/ops/primitives/factors.h"

namespace kiln::ops {

using ir::Node;

Factors FactorsOf(Builder& b, const Node* x) {
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* one = b.Const(x->dtype(), 1);
  const Node* is_zero = b.Equal(x, zero);
  return {b.Where(is_zero, one, x), b.Where(is_zero, one, zero), b.Where(is_zero, x, zero)};
}

// If one of the others is zero, their product is that zero times the rest: 0, whose derivative with
// respect to that zero is the rest. The rest may have overflowed, so the two are not multiplied.
const Node* ProductOfOthers(Builder& b, const Factors& all, const Factors& own) {
  const Node* zero = b.Const(own.nonzero->dtype(), 0);
  const Node* one = b.Const(own.nonzero->dtype(), 1);
  const Node* rest = b.Div(all.nonzero, own.nonzero);
  const Node* zeros = b.Sub(all.zeros, own.zeros);
  const Node* vanishing = b.WithDerivative(zero, b.Sub(all.vanishing, own.vanishing), rest);
  return b.Where(b.Equal(zeros, zero), rest, b.Where(b.Equal(zeros, one), vanishing, zero));
}

}  // namespace kiln::ops
