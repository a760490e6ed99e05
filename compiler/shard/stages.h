// Cuts a graph in stages (graph/stages.h) into what each device does in each slot of time.
//
// A device publishes what it sends at the end of a slot. All devices meet, and those that want it
// fetch it into memory of their own. Bytes that were fetched are free behind the next meeting.
#ifndef KILN_COMPILER_SHARD_STAGES_H_
#define KILN_COMPILER_SHARD_STAGES_H_

#include "compiler/graph/graph.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// `graph` is verified, and in stages. Segments stand by slot, and in each slot by device. What
// later slots read of earlier ones is stored, but for views and what is made of no input.
Program SplitStages(const graph::Graph& graph);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_STAGES_H_
