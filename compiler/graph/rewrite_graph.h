// A table of rules applied to a whole graph: what a pass that is such a table consists of.
#ifndef KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_
#define KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_

#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/rewrite.h"

namespace kiln::graph {

// The graph over the same context at the rules' fixed point; source lines follow their nodes.
Graph RewriteGraph(const Graph& graph, absl::Span<const ir::Rule> rules);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_REWRITE_GRAPH_H_
