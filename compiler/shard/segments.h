// Cuts a local graph where devices must meet: a value that needs a collective's result is in a
// later segment than the collective's operand.
//
// Collectives whose operands are in one segment share one barrier, however many there are. A value
// that a later segment reads is stored. Recomputed instead are views, values that depend on no
// input, and results of few elementwise ops that are much larger than their operands or depend only
// on the inputs of the graph.
#ifndef KILN_COMPILER_SHARD_SEGMENTS_H_
#define KILN_COMPILER_SHARD_SEGMENTS_H_

#include "compiler/shard/localize.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// `local` was made from `graph`. All buffers of the result have offsets.
Program Split(const graph::Graph& graph, const Layouts& layouts, const LocalGraph& local);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SEGMENTS_H_
