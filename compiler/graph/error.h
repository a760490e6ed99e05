// Machine-readable details on an absl::Status: a constant reason, and the subject of the error.
//
// They are payloads "kiln/reason" and "kiln/<key>", a convention of the whole daemon; server/rpc
// makes the wire's google.rpc.ErrorInfo from them. Reasons here: UNKNOWN_OP, OPERAND_COUNT,
// OPERAND_OUT_OF_RANGE, ORDER, CYCLE, ATTRIBUTE, DTYPE_MISMATCH, SHAPE_MISMATCH, TOO_LARGE,
// VERSION, PRECISION, VARIABLE, INPUT, OUTPUT, UPDATE, MESH, STAGES. Keys: node, op, source, limit,
// variable.
#ifndef KILN_COMPILER_GRAPH_ERROR_H_
#define KILN_COMPILER_GRAPH_ERROR_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace kiln::graph {

using Detail = std::pair<std::string_view, std::string>;  // key, value; for example {"node", "7"}

// INVALID_ARGUMENT unless `code` says otherwise.
absl::Status MakeError(std::string_view reason, const std::vector<Detail>& details,
                       std::string_view message,
                       absl::StatusCode code = absl::StatusCode::kInvalidArgument);

// Returns the payload "kiln/<key>"; empty if there is none. The reason's key is "reason".
std::string ErrorDetail(const absl::Status& status, std::string_view key);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_ERROR_H_
