// The pass that implements arithmetic of float16, bfloat16 and the float8 types: it is done in
// float32, and every node's result is rounded to the node's dtype at once, so that results do not
// depend on what is fused. (For +, -, *, / and square roots float32 has enough digits that rounding
// twice equals rounding once: Figueroa, "When is double rounding innocuous?", 1995.) Sums and
// products over axes and scatter_add accumulate in float32 and round at the end.
#ifndef KILN_COMPILER_GRAPH_WIDEN_H_
#define KILN_COMPILER_GRAPH_WIDEN_H_

#include "compiler/graph/graph.h"

namespace kiln::graph {

// After it a node of a short float (see ir::IsShortFloat) is a constant, an input, a cast, a
// bitcast, a `where`, a movement, a gather or structure. Graphs without short floats are returned
// unchanged.
Graph Widen(const Graph& graph);

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_WIDEN_H_
