// Cuts a local graph where devices have to meet: what needs a collective's result stands in a
// segment behind the one that computes the operand.
//
// Collectives whose operands are in one segment meet once, however many there are. What a later
// segment reads of an earlier one is stored, but for views, what is made of no input and what is
// much larger than what it is made of: that is computed again.
#ifndef KILN_COMPILER_SHARD_SEGMENTS_H_
#define KILN_COMPILER_SHARD_SEGMENTS_H_

#include "compiler/shard/localize.h"
#include "compiler/shard/program.h"

namespace kiln::shard {

// `graph` is what `local` was made of. All buffers have their places.
Program Split(const graph::Graph& graph, const Layouts& layouts, const LocalGraph& local);

}  // namespace kiln::shard

#endif  // KILN_COMPILER_SHARD_SEGMENTS_H_
