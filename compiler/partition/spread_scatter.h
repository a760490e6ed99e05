// Scatters for machines with thousands of threads, as reductions and gathers.
#ifndef KILN_COMPILER_PARTITION_SPREAD_SCATTER_H_
#define KILN_COMPILER_PARTITION_SPREAD_SCATTER_H_

#include <cstdint>

#include "compiler/ir/node.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Neighbours that are combined at once, before what comes of them is.
inline constexpr int64_t kScatterPiece = 64;

// The scatter's value without a scatter in it, where loops that go over all positions in order
// would leave some of the target's threads idle; else the scatter itself. Machines on which a task
// is one thread keep their loops. The result has the same bits in every run; sums and products of
// floats are made in another order than the loops'.
//
//  * Few destinations are compared with all of the index, each for itself (compare_destinations.h).
//  * Else positions are sorted by their destinations (sort_positions.h), so that each element's
//    values are neighbours: a segment (combine_segments.h). The element takes up the first one or
//    two pieces of it, of kScatterPiece positions; the others have been reduced before, as have
//    pieces of pieces, and it takes up one or two of each. So the depth grows with the logarithm of
//    the positions, however these are distributed, while each value is read twice at most.
const ir::Node* SpreadScatter(ir::Context& context, const ir::Node* scatter,
                              const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SPREAD_SCATTER_H_
