// The order of a partition's groups, so that a run replaces values at its end.
#ifndef KILN_COMPILER_PARTITION_MEMORY_COMMIT_LAST_H_
#define KILN_COMPILER_PARTITION_MEMORY_COMMIT_LAST_H_

#include "absl/status/status.h"
#include "compiler/graph/graph.h"
#include "compiler/partition/partition.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Moves the groups that compute an update from the input that it replaces after all others, with
// those that read the new value; not if another group depends on them. A run can then write over
// its inputs from there on, and until then the old values are whole. What these groups read stays
// alive for longer. If the arena grows by more than half of the bytes that are then written in
// place, the order remains.
//
// RESOURCE_EXHAUSTED: as PlanMemory.
absl::Status CommitLast(const graph::Graph& graph, const drivers::Target& target,
                        Partition* partition);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_MEMORY_COMMIT_LAST_H_
