// The derivative of a product to one of its factors: the product of all others, also where some are
// zero. Internal to compiler/ops.
#ifndef KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_
#define KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_

#include "compiler/ops/builder.h"

namespace kiln::ops {

// Factors apart from zeros, which no quotient may have. Of several factors together: the product of
// the first, and the sums of the others.
struct Factors {
  const ir::Node* nonzero;    // the factor; 1 for a zero
  const ir::Node* zeros;      // 1 for a zero, else 0
  const ir::Node* vanishing;  // 0, with the derivatives of the factors that are zero
};
Factors FactorsOf(Builder& b, const ir::Node* x);

// The product of all factors but `own`, each among `all`, whose parts broadcast to own's. Its own
// derivatives are exact, those of higher order where no more than two factors are zero.
const ir::Node* ProductOfOthers(Builder& b, const Factors& all, const Factors& own);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_PRIMITIVES_FACTORS_H_
