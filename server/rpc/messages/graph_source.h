// Graphs as received over the wire.
#ifndef KILN_SERVER_RPC_MESSAGES_GRAPH_SOURCE_H_
#define KILN_SERVER_RPC_MESSAGES_GRAPH_SOURCE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kiln/v1/graph.pb.h"
#include "server/memory/host_memory.h"
#include "server/runtime/cache/graph_source.h"

namespace kiln::rpc {

// The approximate host memory of a graph's message.
int64_t BytesHeld(const v1::Graph& graph);

// Charges the graph to `account`. INVALID_ARGUMENT if the graph's variables are declared wrongly;
// GraphSource::Build finds all other errors. RESOURCE_EXHAUSTED: host memory.
absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> MakeGraphSource(
    v1::Graph graph, memory::Account& account);

// The same for GraphSource::Wire. DATA_LOSS if it is not a graph.
absl::StatusOr<std::shared_ptr<const runtime::GraphSource>> UnpackGraphSource(
    absl::string_view wire, memory::Account& account);

}  // namespace kiln::rpc

#endif  // KILN_SERVER_RPC_MESSAGES_GRAPH_SOURCE_H_
