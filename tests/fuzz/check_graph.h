// What must hold for a graph that was accepted, whatever it was made from.
#ifndef KILN_TESTS_FUZZ_CHECK_GRAPH_H_
#define KILN_TESTS_FUZZ_CHECK_GRAPH_H_

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// An accepted graph is legal, prints and reads back to the same text, and is legal after
// simplification, which reaches a fixed point, and with factors rounded to tf32, which rounds none
// twice. A rejected one was the user's mistake (never
// INTERNAL), with a message of bounded length.
Outcome CheckResult(const absl::StatusOr<graph::Graph>& result, const std::string& label_of_error);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_CHECK_GRAPH_H_
