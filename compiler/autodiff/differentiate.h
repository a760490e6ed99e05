// The pass that replaces gradient requests by the derivatives.
#ifndef KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_
#define KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace kiln::autodiff {

// Returns `graph` without kGradient, kDetach and kWithDerivative nodes, in the same context. Every
// request becomes the adjoint of its x; requests with the same y and upstream share one reverse
// walk. A request inside another's y is replaced first, so gradients of gradients work. If y does
// not depend on x the result is zeros of x's shape.
//
// A node is identified by what it computes: two equal expressions are one node, and its gradient is
// that of all their uses. To distinguish equal values, request gradients with respect to inputs.
//
// INVALID_ARGUMENT, with the request's source line in the user's program: x or y does not have a
// float dtype, y is not a scalar and there is no upstream, upstream does not have y's shape and
// dtype, an adjoint exceeds the limits of shapes, or gradients of gradients take more than 2^19
// nodes.
absl::StatusOr<graph::Graph> Differentiate(const graph::Graph& graph);

}  // namespace kiln::autodiff

#endif  // KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_
