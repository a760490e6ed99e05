// What a reduction's kind means: the value to begin with and the op that combines two.
#ifndef KILN_COMPILER_SCHEDULE_REDUCTION_H_
#define KILN_COMPILER_SCHEDULE_REDUCTION_H_

#include "compiler/ir/node.h"

namespace kiln::schedule {

ir::Op CombineOp(ir::ReduceKind kind);
// 0, 1, or the least value of the dtype (minus infinity, false).
const ir::Node* IdentityOf(ir::Context& context, ir::ReduceKind kind, ir::DType dtype);
// Of bools there are maxima alone, which are "or".
const ir::Node* Combine(ir::Context& context, ir::ReduceKind kind, const ir::Node* a,
                        const ir::Node* b);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_REDUCTION_H_
