// Proves that a general graph is right at given values.
#ifndef KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_
#define KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_

#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/variables/general_graph.h"

namespace kiln::variables {

// Returns whether `general` at `values` equals `special`, the graph that was built for these
// values: node by node, after both have been written in Builder's canonical form. Linear in nodes;
// adds nodes to special's context.
bool IsRightAt(const GeneralGraph& general, const graph::Graph& special,
               absl::Span<const int64_t> values);

}  // namespace kiln::variables

#endif  // KILN_COMPILER_VARIABLES_IS_RIGHT_AT_H_
