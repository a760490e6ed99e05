// A graph as it came over the wire.
#ifndef KILN_SERVER_RPC_GRAPH_SOURCE_H_
#define KILN_SERVER_RPC_GRAPH_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kiln/v1/graph.pb.h"
#include "server/memory/host_memory.h"
#include "server/runtime/graph_source.h"

namespace kiln::rpc {

// What a graph's message takes of the host's memory, about.
int64_t BytesHeld(const v1::Graph& graph);

// Charges the graph to `account`. INVALID_ARGUMENT if the graph's variables are declared wrongly;
// everything else is found by GraphSource::Build. RESOURCE_EXHAUSTED: host memory.
absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> MakeGraphSource(
    v1::Graph graph, memory::Account& account);

// The same of GraphSource::Wire. DATA_LOSS if it is none.
absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> UnpackGraphSource(
    absl::string_view wire, memory::Account& account);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_GRAPH_SOURCE_H_
