// The last part of a plan: the orders of its loops, completed and checked.
#ifndef KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_
#define KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_

#include "absl/status/status.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Whether the axis, or one that it is a part of, is the inner part of a split whose last piece is
// shorter.
bool IsPartOfRaggedPiece(const Plan& plan, int axis);

// Axes without an order get one: parallel ones, then reductions, as they are numbered.
// INVALID_ARGUMENT names an order that misses an axis, or whose loops cannot stand so.
// `shares_grid`: as SharesGrid has it of the plan's kernel.
absl::Status FinishOrders(bool shares_grid, Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_PLAN_ORDER_H_
