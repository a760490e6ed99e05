// The axes of a schedule that one instruction of a matrix unit computes: for a sum of products, 16
// rows by 8 columns, over some terms (mma.sync of shape m16n8k16 or m16n8k8; PTX ISA, "Matrix
// multiply-accumulate operation using mma instruction"). The 32 threads of a subgroup share these
// 128 sums; thread 4 * group + member has those in rows group and group + 8, columns 2 * member and
// 2 * member + 1.
//
// So the order of a stage with such axes ends with
//   group     8 threads,  inner part of 16 rows that were split by 8
//   member    4 threads,  outer part of 8 columns that were split by 2
//   …         loops of any other kind
//   rows      matrix,     the outer part of the 16 rows
//   columns   matrix,     the inner part of the 8 columns
//   terms     matrix,     16 or 8 terms of the sum
// where all pieces are full, and both factors are staged. Group and member are the last thread
// axes.
#ifndef KILN_COMPILER_SCHEDULE_MATRIX_PLAN_H_
#define KILN_COMPILER_SCHEDULE_MATRIX_PLAN_H_

#include "absl/status/status.h"
#include "compiler/schedule/plan.h"

namespace kiln::schedule {

// Sets StagePlan::matrix of the stages that have such axes. Returns INVALID_ARGUMENT, which names
// the order, if matrix axes are not in this form. Requires: the orders are finished.
absl::Status FinishMatrices(Plan* plan);

}  // namespace kiln::schedule

#endif  // KILN_COMPILER_SCHEDULE_MATRIX_PLAN_H_
