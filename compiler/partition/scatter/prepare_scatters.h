// Rewrites scatters to the form that clustering and lowering handle: in place.
#ifndef KILN_COMPILER_PARTITION_SCATTER_PREPARE_SCATTERS_H_
#define KILN_COMPILER_PARTITION_SCATTER_PREPARE_SCATTERS_H_

#include "compiler/graph/graph.h"
#include "drivers/interface/target.h"

namespace kiln::partition {

// Returns a graph over the same context, in which each scatter has become
//  * x, if there is nothing to scatter;
//  * where(index == i, combined, x), which fuses, if there is one value per line along the axis;
//  * the forms of spread_scatter.h, if one of thousands of threads would loop over many positions;
//  * if many sums go into few elements, as in a histogram, scatters of kParts pieces, which run in
//    parallel, and a sum over the pieces;
//  * otherwise a scatter that overwrites a kMutable of x, or x itself if x is a scatter and has no
//    other use.
graph::Graph PrepareScatters(const graph::Graph& graph, const drivers::Target& target);

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_SCATTER_PREPARE_SCATTERS_H_
