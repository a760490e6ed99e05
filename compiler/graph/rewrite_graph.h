// Applies a table of rules to a whole graph, for passes that consist of such a table.
#ifndef KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_
#define KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_

#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/rewrite.h"

namespace kiln::graph {

// Returns the graph over the same context at the rules' fixed point; source lines follow their
// nodes.
Graph RewriteGraph(const Graph& graph, absl::Span<const ir::Rule> rules);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_
