// A graph as it came over the wire.
#ifndef KILN_SERVER_RPC_GRAPH_SOURCE_H_
#define KILN_SERVER_RPC_GRAPH_SOURCE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "kiln/v1/graph.pb.h"
#include "server/runtime/graph_source.h"

namespace kiln::rpc {

// INVALID_ARGUMENT if the graph's variables are declared wrongly. Everything else is found by
// GraphSource::Build.
absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> MakeGraphSource(v1::Graph graph);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_GRAPH_SOURCE_H_
