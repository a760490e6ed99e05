// The proof that a general graph is right at some values.
#ifndef KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_
#define KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_

#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// Whether `general` at `values` is exactly `special`, the graph that was made for these values
// alone: node for node, once both have been written in the one form that Builder gives. Linear in
// nodes; adds nodes to special's context.
bool IsRightAt(const GeneralGraph& general, const graph::Graph& special,
               absl::Span<const int64_t> values);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_
