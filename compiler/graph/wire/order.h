// Checks that operand indices of the wire are in range and refer to earlier nodes. Internal to
// wire.cc.
#ifndef KILN_COMPILER_GRAPH_WIRE_ORDER_H_
#define KILN_COMPILER_GRAPH_WIRE_ORDER_H_

#include "absl/status/status.h"
#include "kiln/v1/graph.pb.h"

namespace kiln::graph {

// Checks the operands of node `index`. Reasons: OPERAND_OUT_OF_RANGE; CYCLE, whose message shows
// the cycle; ORDER, for an operand that is only listed after its user.
absl::Status CheckOperandOrder(const v1::Graph& proto, int index);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIRE_ORDER_H_
