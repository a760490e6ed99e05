// Reverse-mode differentiation of one value (Linnainmaa, 1976; Griewank and Walther, "Evaluating
// Derivatives", 2008).
#ifndef KILN_COMPILER_AUTODIFF_REVERSE_H_
#define KILN_COMPILER_AUTODIFF_REVERSE_H_

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "compiler/ir/node.h"
#include "compiler/ops/builder.h"

namespace kiln::autodiff {

// Returns for each of `wanted` the derivative of `y`, weighted by `seed` (of y's shape and dtype),
// with respect to it. A node on which y does not depend by a differentiable path is missing from
// the result. One iterative walk over the nodes between y and `wanted`; adjoints of a node with
// several users are added in the order of the walk.
absl::flat_hash_map<const ir::Node*, const ir::Node*> Adjoints(
    ops::Builder& builder, const ir::Node* y, const ir::Node* seed,
    absl::Span<const ir::Node* const> wanted);

}  // namespace kiln::autodiff

#endif  // KILN_COMPILER_AUTODIFF_REVERSE_H_
