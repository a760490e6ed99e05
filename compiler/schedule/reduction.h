// The identity and the combining op of each kind of reduction.
#ifndef KILN_COMPILER_SCHEDULE_REDUCTION_H_
#define KILN_COMPILER_SCHEDULE_REDUCTION_H_

#include "compiler/ir/node.h"

namespace kiln::schedule {

ir::Op CombineOp(ir::ReduceKind kind);
// Returns 0, 1, or the minimum of the dtype (minus infinity, false).
const ir::Node* IdentityOf(ir::Context& context, ir::ReduceKind kind, ir::DType dtype);
// Bools have only maxima, which are "or".
const ir::Node* Combine(ir::Context& context, ir::ReduceKind kind, const ir::Node* a,
                        const ir::Node* b);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_REDUCTION_H_
