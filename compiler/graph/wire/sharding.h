// Decodes the layouts of a graph's values on its mesh. Internal to wire.cc.
#ifndef KILN_COMPILER_GRAPH_WIRE_SHARDING_H_
#define KILN_COMPILER_GRAPH_WIRE_SHARDING_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// Returns null if `proto` has no mesh. `graph` has its inputs and outputs; `nodes` is indexed as on
// the wire. Returns INVALID_ARGUMENT if a value cannot have its declared layout.
absl::StatusOr<std::shared_ptr<const Sharding>> ReadSharding(
    const v1::Graph& proto, const Graph& graph, const std::vector<const ir::Node*>& nodes);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_SHARDING_H_
