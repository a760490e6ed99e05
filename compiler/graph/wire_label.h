// How messages name what a client sent. Internal to the wire's decoder.
#ifndef KILN_COMPILER_GRAPH_WIRE_LABEL_H_
#define KILN_COMPILER_GRAPH_WIRE_LABEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// `node 7 "add" (train.py:31)`.
std::string Label(const v1::Graph& proto, int index);

// An error about a node: its label before the message, its index, op and source in the details.
absl::Status NodeError(const v1::Graph& proto, int index, std::string_view reason,
                       std::string_view message);

// `status` made an error about a node. Its reason stays if it has one, else it is `reason`; so do
// its other details. Codes other than INVALID_ARGUMENT stay.
absl::Status AboutNode(const v1::Graph& proto, int index, std::string_view reason,
                       const absl::Status& status);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_LABEL_H_
