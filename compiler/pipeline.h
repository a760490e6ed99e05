// The passes over a tensor graph, in their order: named, timed, dumped, verified; optional ones can
// be switched off.
//
// After them the graph is split into kernels (partition/fuse.h), every kernel is lowered, scheduled
// and emitted (compile_kernels.h), and memory is planned (partition/memory_plan.h): compiler.h's
// Compile does it all.
#ifndef KILN_COMPILER_PIPELINE_H_
#define KILN_COMPILER_PIPELINE_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"

namespace kiln::compiler {

struct GraphPass {
  std::string_view name;
  bool optional = false;  // the result is right without it
  absl::StatusOr<graph::Graph> (*run)(const graph::Graph& graph) = nullptr;
};

absl::Span<const GraphPass> GraphPasses();

// Runs the passes up to and including `last` (all of them if empty) and appends their times.
// INVALID_ARGUMENT for a name that is no pass, for a disabled pass that is not optional, and for
// what a pass finds wrong with the graph.
absl::StatusOr<graph::Graph> RunGraphPasses(const graph::Graph& graph, std::string_view last,
                                            const Options& options, std::vector<PassTime>* times);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PIPELINE_H_
