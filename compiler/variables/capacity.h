// One ordinary graph, all of whose shapes are numbers, that computes a general graph at any values.
//
// Every dimension gets its *capacity*, the most it can be within the bounds. The variables' values
// are an input of their own, int64, one element a variable. An element within the true shape has
// the true value; what lies beyond it is work without meaning that no result depends on:
// reductions, paddings and indexed ops mask it. So partition, kernels, schedules and code know
// nothing of variables.
#ifndef KILN_COMPILER_VARIABLES_CAPACITY_H_
#define KILN_COMPILER_VARIABLES_CAPACITY_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// Inputs, outputs and updates are as the general graph's, those of a variable shape *packed*: one
// dimension of the capacity's elements, whose first elements are the true value in row-major order.
// The rest of such a buffer holds anything. The last input is the variables' values.
// UNIMPLEMENTED names the op that cannot be masked.
absl::StatusOr<graph::Graph> AtCapacity(const GeneralGraph& general);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_CAPACITY_H_
