// Labels of a client's nodes in messages. Internal to the wire's decoder.
#ifndef KILN_COMPILER_GRAPH_WIRE_LABEL_H_
#define KILN_COMPILER_GRAPH_WIRE_LABEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// `node 7 "add" (train.py:31)`.
std::string Label(const v1::Graph& proto, int index);

// Returns an error about a node: its label before the message, its index, op and source in the
// details.
absl::Status NodeError(const v1::Graph& proto, int index, std::string_view reason,
                       std::string_view message);

// Turns `status` into an error about a node. Keeps its other details, its code, and its reason if
// it has one; otherwise sets `reason`.
absl::Status AboutNode(const v1::Graph& proto, int index, std::string_view reason,
                       const absl::Status& status);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_LABEL_H_
