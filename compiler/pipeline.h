// All passes that rewrite a graph on its way to kernels, in order: named, timed, verified, and
// dumped on request. Optional passes can be disabled.
#ifndef KILN_COMPILER_PIPELINE_H_
#define KILN_COMPILER_PIPELINE_H_

#include <optional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "compiler/partition/cluster/clustering.h"
#include "compiler/partition/memory/memory_plan.h"
#include "compiler/partition/partition.h"
#include "compiler/shard/program.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// The state of the passes. Each part is made from those before it.
struct PassState {
  graph::Graph graph;
  GraphChoices choices;  // from the pass "cluster" on
  // For a graph on a mesh, after the pass "shard": the later passes run on its segments' graphs,
  // one by one.
  std::optional<shard::Program> sharded;
  partition::Clustering clusters;
  partition::Partition partition;
  bool updates_in_place = false;  // from the pass "update_in_place" on
  partition::MemoryPlan memory;
};

enum class PassLevel { kGraph, kClusters, kPartition, kMemory, kKernels };

struct Pass {
  std::string_view name;
  PassLevel level = PassLevel::kGraph;  // the part of the state that it makes or changes
  bool optional = false;                // the results are right without it
  // Null for passes that process each kernel: compile_kernels.h runs them.
  absl::Status (*run)(PassState& state, const drivers::Target& target) = nullptr;
};

// Returns all passes, in order.
absl::Span<const Pass> Passes();

// INVALID_ARGUMENT lists the existing passes.
absl::StatusOr<const Pass*> FindPass(std::string_view name);

// From `first` to `last`, both included. Empty: from the first pass, or to the last one before
// kernels.
struct PassRange {
  std::string_view first = {};
  std::string_view last = {};
};

// Runs passes on `graph`, which will run on `target`, and appends a report for each.
// INVALID_ARGUMENT for a name that is not a pass, for a pass that cannot be disabled, for a range
// that begins after the graph passes, ends in the kernel passes, or goes beyond "shard" with a
// graph on a mesh, and for a mistake that a pass finds in the graph. INTERNAL names the pass after
// which the state is invalid.
absl::StatusOr<PassState> RunPasses(const graph::Graph& graph, const drivers::Target& target,
                                    PassRange range, const Options& options,
                                    std::vector<PassReport>* reports);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PIPELINE_H_
