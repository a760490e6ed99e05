// Scatters as reductions and gathers, for machines with thousands of threads.
#ifndef KILN_COMPILER_PARTITION_SCATTER_SPREAD_SCATTER_H_
#define KILN_COMPILER_PARTITION_SCATTER_SPREAD_SCATTER_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Number of adjacent elements that are combined at once, before their results are combined.
inline constexpr int64_t kScatterPiece = 64;

// Returns the scatter's value without a scatter, if loops over all positions in order would leave
// some of the target's threads idle; otherwise the scatter itself. Machines on which a task is one
// thread keep the loops. The result has the same bits in every run; sums and products of floats are
// computed in another order than in the loops.
//
//  * Few destinations: each one compares itself with all of the index (compare_destinations.h).
//  * Otherwise positions are sorted by destination (sort_positions.h), so that each destination's
//    values are adjacent: a segment (combine_segments.h). The destination combines the values of
//    the first one or two pieces of it, of kScatterPiece positions. The other pieces have been
//    reduced before, as have pieces of pieces, and it combines one or two of each. So the depth
//    grows with the logarithm of the number of positions, however they are distributed, while each
//    value is read at most twice.
const ir::Node* SpreadScatter(ir::Context& context, const ir::Node* scatter,
                              const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_SPREAD_SCATTER_H_
