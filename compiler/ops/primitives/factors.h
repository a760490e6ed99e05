// The derivative of a product with respect to one factor: the product of all others, even if some
// are zero. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_
#define KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Factors with zeros separated out, since a quotient must not divide by zero. For several factors
// together: the product of `nonzero`, and the sums of the other two.
struct Factors {
  const ir::Node* nonzero;    // the factor; 1 if it is zero
  const ir::Node* zeros;      // 1 if the factor is zero, else 0
  const ir::Node* vanishing;  // 0, with the derivatives of the factors that are zero
};
Factors FactorsOf(Builder& b, const ir::Node* x);

// Returns the product of all factors except `own`. `own` is part of `all`, and the parts of `all`
// broadcast to own's. First derivatives are exact; higher-order ones are if at most two factors are
// zero.
const ir::Node* ProductOfOthers(Builder& b, const Factors& all, const Factors& own);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_
