// The spec of a whole graph: legal nodes, declared inputs, matching updates.
#ifndef KILN_COMPILER_GRAPH_VERIFY_H_
#define KILN_COMPILER_GRAPH_VERIFY_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace kiln::graph {

// Returns the graph's results in order: outputs, then the values of updates.
std::vector<const ir::Node*> Roots(const Graph& graph);

// Returns `graph` with other results, in the order of Roots. For passes that rewrite the roots.
Graph WithRoots(const Graph& graph, const std::vector<const ir::Node*>& roots);

// Runs ir::Verify at the tensor level, and checks that every kInput has the dtype and shape of its
// declaration, and that every update names an input once and has its dtype and shape. An INTERNAL
// error names what is wrong. Called after every pass.
absl::Status Verify(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_VERIFY_H_
