// Cuts a graph in stages (graph/stages.h) into the work of each device in each slot of time.
//
// A device publishes what it sends at the end of a slot. All devices meet, and the receivers fetch
// it into their own memory. The fetched bytes are free after the next barrier.
#ifndef KILN_COMPILER_SHARD_STAGES_H_
#define KILN_COMPILER_SHARD_STAGES_H_

#include "compiler/graph/graph.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// Requires: `graph` is verified, and in stages. The segments are ordered by slot, then by device. A
// value that later slots read is stored, except views and values that depend on no input, which are
// recomputed.
Program SplitStages(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_STAGES_H_
