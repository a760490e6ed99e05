// Derives the graph for all values of its variables from graphs at some values.
//
// The rules of ops only handle numbers, so the graph is built at a few neighbouring values and the
// results are compared (anti-unification; Plotkin, "A note on inductive generalization", 1970). The
// graphs may differ only in numbers, and each must be one affine function of the variables and of
// products and quotients of them (derived.h), or the reciprocal of one. Composites, gradients and
// shape rules need no code for this. A function found from a few values is a guess and never
// trusted: see is_right_at.h.
#ifndef KILN_COMPILER_VARIABLES_GENERALIZE_H_
#define KILN_COMPILER_VARIABLES_GENERALIZE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// Returns the graph at these values (in the variables' order), without kGradient nodes.
using BuildFunction = std::function<absl::StatusOr<graph::Graph>(absl::Span<const int64_t> values)>;

// UNIMPLEMENTED, with the reason, if the graphs have no common form; an error of `build` if it
// fails at all values tried.
absl::StatusOr<GeneralGraph> Generalize(std::vector<graph::Variable> variables,
                                        const BuildFunction& build);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_GENERALIZE_H_
