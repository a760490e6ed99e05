// Decodes the graph on the wire (proto/kiln/v1/graph.proto) to a checked graph of primitives.
//
// This folder is the only one of the compiler that includes the generated protobuf
// headers. Safe for untrusted messages: every mistake is an INVALID_ARGUMENT that names the node by
// index, op and source line, with the reasons of graph/error.h. Time and memory are linear in the
// message, within the limits.
#ifndef KILN_COMPILER_GRAPH_WIRE_WIRE_H_
#define KILN_COMPILER_GRAPH_WIRE_WIRE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/variable.h"
#include "compiler/ops/form_sizes.h"

namespace kiln::v1 {
class Graph;
}

namespace kiln::graph {

struct Limits {
  int64_t nodes_max = 1 << 18;       // on the wire
  int64_t primitives_max = 1 << 22;  // after expansion
  int64_t operands_max = 1 << 14;    // of one node
  int64_t elements_max = int64_t{1}
                         << 48;          // of one node's result, even if it is never materialised
  int64_t bytes_max = int64_t{1} << 44;  // of one input, output or update
  // Called from time to time while the graph grows, with the current number of primitives; an error
  // stops the decoding. May be empty.
  std::function<absl::Status(int64_t primitives)> grow{};
};

// Returns the graph with every dimension fixed. `bindings` must give a value to every variable and
// to nothing else. Composite ops are expanded; "gradient" stays as kGradient; Graph::sources has
// the nodes' source lines. FAILED_PRECONDITION (reason VERSION) means that the client's op set is
// newer than this daemon's. `sizes`, if any, are the ranges of the sizes that select the forms of
// expansions.
absl::StatusOr<Graph> FromProto(const v1::Graph& proto, const Bindings& bindings,
                                const Limits& limits = {}, ops::FormSizes* sizes = nullptr);

// Returns the variables that `proto` declares, checked as FromProto does. A graph without variables
// needs no bindings and can be compiled when it is defined. A graph with variables is checked by
// FromProto with every variable at `min`.
absl::StatusOr<std::vector<Variable>> Variables(const v1::Graph& proto);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_WIRE_H_
