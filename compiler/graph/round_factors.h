// The pass that implements a graph's float32_matmul_precision: if it is kHigh, both factors of
// every float32 contraction are rounded to tf32 (to nearest, ties to even; infinities and NaN are
// kept). Later passes need no extra information: the last step of rounding is an `and` that clears
// 13 bits, from which ir::IsRoundedToTf32 recognizes what a tf32 matrix unit reads exactly.
//
// A contraction is a sum of products in which, of the axes longer than 1,
//
// * both factors vary along one that is summed, and
// * each factor varies along one that is kept and along which the other one does not.
//
// So matrix products, convolutions and both gradients of each are contractions, however they are
// written. A variance, a dot product, a matrix-vector product and a depthwise convolution are not:
// they do not run on matrix units. Several products may be added before the sum, as in the gradient
// of a value that several contractions read.
#ifndef KILN_COMPILER_GRAPH_ROUND_FACTORS_H_
#define KILN_COMPILER_GRAPH_ROUND_FACTORS_H_

#include "compiler/graph/graph.h"

namespace kiln::graph {

// Returns the same graph with kHighest. If it was kHigh, factors are rounded below the views of
// them. Values that tf32 holds exactly are not rounded: rounded values, short floats, 8-bit
// integers, some constants. Requires: no kGradient, and short floats have been widened. Linear in
// the graph's nodes.
Graph RoundFactors(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_ROUND_FACTORS_H_
