// The last part of a plan: completes and checks the orders of its loops.
#ifndef KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_
#define KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_

#include "absl/status/status.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Returns whether the axis, or one that it is a part of, is the inner part of a split whose last
// piece is shorter.
bool IsPartOfRaggedPiece(const Plan& plan, int axis);

// Gives axes without an order one: parallel ones, then reductions, by number. Returns
// INVALID_ARGUMENT, which names the order, if an order misses an axis or is not allowed.
// `shares_grid`: SharesGrid of the plan's kernel.
absl::Status FinishOrders(bool shares_grid, Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_
