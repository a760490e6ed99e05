// Gives scatters the form that clusters and lowering know: in place.
#ifndef KILN_COMPILER_PARTITION_PREPARE_SCATTERS_H_
#define KILN_COMPILER_PARTITION_PREPARE_SCATTERS_H_

#include "compiler/graph/graph.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// A graph over the same context, in which each scatter has become
//  * with nothing to scatter, x;
//  * with one value for each line along the axis, where(index == i, combined, x), which fuses;
//  * where one thread of thousands would go over many positions, what spread_scatter.h says;
//  * where many sums go into few elements, as a histogram's, those of kParts pieces, which run in
//    parallel, and a sum over the pieces;
//  * else a scatter that writes over a kMutable of x, or over x itself where that is a scatter
//    already and nobody else uses it.
graph::Graph PrepareScatters(const graph::Graph& graph, const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_PREPARE_SCATTERS_H_
