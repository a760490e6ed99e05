// Makes an ordinary graph, with fixed shapes, that computes a general graph at any values of its
// variables.
//
// Every dimension gets its *capacity*, its maximum within the bounds. The variables' values are an
// additional int64 input with one element per variable. Elements within the true shape have the
// true value. Elements beyond it are computed but meaningless, and no result depends on them:
// reductions, paddings and indexed ops mask them. So partitioning, kernels, schedules and code
// generation need not support variables.
#ifndef KILN_COMPILER_VARIABLES_CAPACITY_H_
#define KILN_COMPILER_VARIABLES_CAPACITY_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// Inputs, outputs and updates are those of the general graph. One with a variable shape is
// *packed*: it has one dimension, the number of elements at capacity, and its first elements are
// the true value in row-major order. The rest of such a buffer is undefined. The last input is the
// variables' values. UNIMPLEMENTED names an op that cannot be masked.
absl::StatusOr<graph::Graph> AtCapacity(const GeneralGraph& general);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_CAPACITY_H_
