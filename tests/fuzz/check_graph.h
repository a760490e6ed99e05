// Properties of every accepted graph, no matter how it was made.
#ifndef KILN_TESTS_FUZZ_CHECK_GRAPH_H_
#define KILN_TESTS_FUZZ_CHECK_GRAPH_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// An accepted graph is legal, and its printed text parses to the same graph. It is legal after
// simplification, which reaches a fixed point, and after rounding factors to tf32, which rounds
// none twice. A rejected graph was the user's mistake (never INTERNAL), with a message of bounded
// length.
Outcome CheckResult(const absl::StatusOr<graph::Graph>& result, const std::string& label_of_error);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_CHECK_GRAPH_H_
