// How a graph's values lie on its mesh. Internal to wire.cc.
#ifndef KILN_COMPILER_GRAPH_WIRE_SHARDING_H_
#define KILN_COMPILER_GRAPH_WIRE_SHARDING_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// Null if `proto` has no mesh. `graph` has inputs and outputs, `nodes` stands by the wire's index.
// INVALID_ARGUMENT for whatever cannot lie as it says.
absl::StatusOr<std::shared_ptr<const Sharding>> ReadSharding(
    const v1::Graph& proto, const Graph& graph, const std::vector<const ir::Node*>& nodes);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_SHARDING_H_
