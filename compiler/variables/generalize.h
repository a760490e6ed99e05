// From a graph at some values of its variables to the graph at all of them.
//
// The rules of ops know numbers only, so the graph is made at a few neighbouring values and the
// results are laid over each other (anti-unification; Plotkin, "A note on inductive
// generalization", 1970): where they differ must be numbers, and those must lie on one affine
// function of the variables. Composites, gradients and the rules of shapes take part without
// knowing of it. What was guessed so from a few values is never trusted: see is_right_at.h.
#ifndef KILN_COMPILER_VARIABLES_GENERALIZE_H_
#define KILN_COMPILER_VARIABLES_GENERALIZE_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// The graph at these values, in the variables' order, without kGradient nodes.
using BuildFunction = std::function<absl::StatusOr<graph::Graph>(absl::Span<const int64_t> values)>;

// UNIMPLEMENTED, saying why, if the graphs have no common form; an error of `build` if it fails
// wherever it is tried.
absl::StatusOr<GeneralGraph> Generalize(std::vector<graph::Variable> variables,
                                        const BuildFunction& build);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_GENERALIZE_H_
