// The pass that does what a graph's float32_matmul_precision asks for: where it is kHigh, both
// factors of every float32 contraction are rounded to tf32 (to nearest, ties to even; infinities
// and NaN stay what they are). What multiplies them need not know: the last step of rounding is an
// `and` that clears 13 bits, by which ir::IsRoundedToTf32 knows what a matrix unit may take.
//
// A contraction is a sum of products in which, of axes longer than 1,
//
//  * both factors vary along one that is summed, and
//  * each factor varies along one that stays and along which the other one does not.
//
// So matrix products, convolutions and both gradients of each are contractions, however they are
// written. A variance, a dot product, a matrix times one vector and a depthwise convolution are
// not: they are not for matrix units. Several products may be added up before the sum, as gradients
// are of a value that several contractions read.
#ifndef KILN_COMPILER_GRAPH_ROUND_FACTORS_H_
#define KILN_COMPILER_GRAPH_ROUND_FACTORS_H_

#include "compiler/graph/graph.h"

namespace kiln::graph {

// The same graph with kHighest and, if it was kHigh, with factors rounded beneath the views of
// them. What tf32 holds exactly is left alone: rounded values, short floats, integers of 8 bits,
// some constants. Takes a graph without kGradient, in which short floats have been widened. Linear
// in the graph's nodes.
Graph RoundFactors(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_ROUND_FACTORS_H_
