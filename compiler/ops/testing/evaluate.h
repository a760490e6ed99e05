// The reference interpreter: the semantics of a graph, implemented as plainly as possible. Tests
// compare every back end with it.
#ifndef KILN_COMPILER_OPS_TESTING_EVALUATE_H_
#define KILN_COMPILER_OPS_TESTING_EVALUATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::ops {

// Returns the values of `roots`, tensor-level nodes without kGradient; `inputs` are by
// InputAttr::index. Floats are computed in double and rounded to the node's dtype after every node;
// sums are added in row-major order in double. Iterative; a value is dropped after its last use.
// INVALID_ARGUMENT: an input is missing, has another shape or dtype, or the wrong number of bytes.
absl::StatusOr<std::vector<HostTensor>> Evaluate(absl::Span<const ir::Node* const> roots,
                                                 absl::Span<const HostTensor> inputs);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_TESTING_EVALUATE_H_
