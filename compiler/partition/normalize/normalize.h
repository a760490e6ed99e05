// Rewrites a tensor graph to the forms that fuse best and that schedules recognise. Values are
// unchanged up to the order of summation.
//
//  * A sum of a movement of a sum becomes one sum if nothing is repeated between them (so a
//    convolution's input gradient is one contraction); so do products and maxima through movement
//    that inserts nothing.
//  * A window as long as its stride is a reshape; sums over unwindows lose their strides, see
//    windows.h.
//  * A sum of several products becomes several sums, so that each is a contraction.
//  * A sum that follows from another one is not computed, see factor_sum.h.
//  * A large reduction to few elements becomes two, see split_reduction.h.
//  * The mask x <= 0 of a relu that is computed anyway is taken from its result.
#ifndef KILN_COMPILER_PARTITION_NORMALIZE_NORMALIZE_H_
#define KILN_COMPILER_PARTITION_NORMALIZE_NORMALIZE_H_

#include "compiler/graph/graph.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Returns a graph over the same context. Linear in the graph's nodes.
graph::Graph Normalize(const graph::Graph& graph, const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_NORMALIZE_NORMALIZE_H_
