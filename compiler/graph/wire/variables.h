// Variables in dimensions: declarations, bindings, and resolving dimensions to numbers. Internal to
// wire.cc.
#ifndef KILN_COMPILER_GRAPH_WIRE_VARIABLES_H_
#define KILN_COMPILER_GRAPH_WIRE_VARIABLES_H_

#include "compiler/graph/wire/wire.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// Returns OK if `bindings` has a value within the bounds for each of `variables`, and no other.
absl::Status CheckBindings(const std::vector<Variable>& variables, const Bindings& bindings);

// Returns the dimension's number at these values; INVALID_ARGUMENT without the node's name.
absl::StatusOr<int64_t> ResolveDim(const v1::Dim& dim, const Bindings& bindings);

// Returns the sizes of a shape; INVALID_ARGUMENT without the node's name.
absl::StatusOr<ir::Shape> ResolveShape(const v1::Shape& shape, const Bindings& bindings);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_VARIABLES_H_
