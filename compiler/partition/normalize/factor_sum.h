// Sums that follow from other sums.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_FACTOR_SUM_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_FACTOR_SUM_H_

#include <functional>

#include "compiler/ir/node.h"

namespace kiln::partition {

// Returns another form of a sum of float32 or float64, or null:
//
//  * sum(c * (x - mean(x))), with c constant along the summed axes, is c * (mean(x) * 0): zero, or
//    NaN where x is not finite. It occurs in the gradient of every variance.
//  * sum(c * y) is c * sum(y) if sum(y) is computed anyway: `known` returns its form, or null.
//
// So the backward pass of a normalisation reads its operands once for all sums.
const ir::Node* FactorSum(ir::Context& context, const ir::Node* sum,
                          const std::function<const ir::Node*(const ir::Node*)>& known);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_FACTOR_SUM_H_
