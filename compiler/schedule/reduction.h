// The identity and the combining op of each kind of reduction.
#ifndef KILN_COMPILER_SCHEDULE_REDUCTION_H_
#define KILN_COMPILER_SCHEDULE_REDUCTION_H_

#include <vector>

#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/kernel/kernel.h"

namespace kiln::schedule {

// Returns the stage's kReduce nodes, in topological order.
std::vector<const ir::Node*> ReducesOf(const kernel::Stage& stage);

ir::Op CombineOp(ir::ReduceKind kind);
// Returns 0, 1, or the minimum of the dtype (minus infinity, false).
const ir::Node* IdentityOf(ir::Context& context, ir::ReduceKind kind, ir::DType dtype);
// Bools have only maxima, which are "or".
const ir::Node* Combine(ir::Context& context, ir::ReduceKind kind, const ir::Node* a,
                        const ir::Node* b);

// Returns whether the bool `node` is false wherever `condition` is.
bool IsFalseWithout(const ir::Node* node, const ir::Node* condition);
// Returns whether `term` is the reduction's identity wherever the condition is false. A product is
// zero where one factor is, even if the other one is infinite.
bool IsNeutralWithout(ir::ReduceKind kind, const ir::Node* term, const ir::Node* condition);
// Returns the conditions on ranges without any of which the terms of all these kReduce nodes are
// identities. Conditions that load data are not among them.
std::vector<const ir::Node*> NeededConditions(absl::Span<const ir::Node* const> reduces);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_REDUCTION_H_
