// Converts one node of the wire to tensor-level nodes. Internal to wire.cc.
#ifndef KILN_COMPILER_GRAPH_WIRE_NODE_H_
#define KILN_COMPILER_GRAPH_WIRE_NODE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/wire/wire.h"
#include "compiler/ops/builder.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// Returns the result of node `index`. `nodes` are the results of the nodes before it, to which its
// operands refer. Requires: CheckOperandOrder has passed. Errors name the node.
absl::StatusOr<const ir::Node*> BuildNode(const v1::Graph& proto, int index,
                                          const std::vector<const ir::Node*>& nodes,
                                          const Bindings& bindings, const Limits& limits,
                                          ops::Builder& builder);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_NODE_H_
