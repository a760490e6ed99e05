// The spec of a whole graph: legal nodes, inputs that are declared, updates that fit.
#ifndef KILN_COMPILER_GRAPH_VERIFY_H_
#define KILN_COMPILER_GRAPH_VERIFY_H_

#include <vector>

#include "absl/status/status.h"
#include "compiler/graph/graph.h"

namespace kiln::graph {

// The graph's results in order: outputs, then the values of updates.
std::vector<const ir::Node*> Roots(const Graph& graph);

// `graph` with other results, in the order of Roots. What a pass returns after it has rewritten
// them.
Graph WithRoots(const Graph& graph, const std::vector<const ir::Node*>& roots);

// ir::Verify at the tensor level; every kInput has the dtype and shape of its declaration; every
// update names an input once and has its dtype and shape. INTERNAL names what is wrong. Called
// after every pass.
absl::Status Verify(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_VERIFY_H_
