// The pass that turns gradient requests into graphs.
#ifndef KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_
#define KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"

namespace kiln::autodiff {

// `graph` without kGradient, kDetach and kWithDerivative nodes, in the same context. Every request
// becomes the adjoint of its x; requests with the same y and upstream share one reverse walk. A
// request inside another's y is answered first, so gradients of gradients work. Where y does not
// depend on x the answer is zeros of x's shape.
//
// A node is what it computes: two equal expressions are one node, and its gradient is that of all
// their uses. Ask for gradients of inputs to tell equal values apart.
//
// INVALID_ARGUMENT, with the request's place in the user's program: x or y is not of a float dtype,
// y is not a scalar and there is no upstream, upstream has not y's shape and dtype, an adjoint
// is larger than a shape may be, or gradients of gradients take more than 2^19 nodes.
absl::StatusOr<graph::Graph> Differentiate(const graph::Graph& graph);

}  // namespace kiln::autodiff

#endif  // KILN_COMPILER_AUTODIFF_DIFFERENTIATE_H_
