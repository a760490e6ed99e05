// Everything that rewrites a graph on its way to kernels, in its order: named, timed, verified, and
// dumped where that is asked for. Optional passes can be switched off.
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
#include "compiler/partition/clustering.h"
#include "compiler/partition/memory_plan.h"
#include "compiler/partition/partition.h"
#include "compiler/shard/program.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// What the passes work on. Each part is made from those before it.
struct PassState {
  graph::Graph graph;
  // Of a graph on a mesh, after the pass "shard": its segments' graphs take the passes after that,
  // each by itself.
  std::optional<shard::Program> sharded;
  partition::Clustering clusters;
  partition::Partition partition;
  partition::MemoryPlan memory;
};

enum class PassLevel { kGraph, kClusters, kPartition, kMemory, kKernels };

struct Pass {
  std::string_view name;
  PassLevel level = PassLevel::kGraph;  // the part that it makes or changes
  bool optional = false;                // the results are right without it
  // Null for what is done to each kernel: compile_kernels.h does it.
  absl::Status (*run)(PassState& state, const drivers::Target& target) = nullptr;
};

// All of them, in their order.
absl::Span<const Pass> Passes();

// INVALID_ARGUMENT names the passes that there are.
absl::StatusOr<const Pass*> FindPass(std::string_view name);

// From `first` to `last`, both included; empty: from the first, to the last one before kernels.
struct PassRange {
  std::string_view first = {};
  std::string_view last = {};
};

// Runs passes on `graph`, which is to run on `target`, and appends what it has to say of each.
// INVALID_ARGUMENT for a name that is no pass or cannot be switched off, for a range that begins
// beyond graphs or ends in kernels, or goes on beyond "shard" with a graph on a mesh, and for what
// a pass finds wrong with the graph; INTERNAL names the pass after which something is not as it
// must be.
absl::StatusOr<PassState> RunPasses(const graph::Graph& graph, const drivers::Target& target,
                                    PassRange range, const Options& options,
                                    std::vector<PassReport>* reports);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_PIPELINE_H_
