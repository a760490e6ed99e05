// Algebraic simplification of tensor graphs: a table of rules over the rewrite engine.
//
// Every rule keeps each element's value: for floats as IEEE 754 defines it, including signed zeros
// and NaNs, except that a reduction may add its terms in another order. So x + 0.0 stays (it turns
// -0.0 into 0.0) and x * 0.0 stays, while x - 0.0 and x * 1.0 are removed.
#ifndef KILN_COMPILER_GRAPH_SIMPLIFY_SIMPLIFY_H_
#define KILN_COMPILER_GRAPH_SIMPLIFY_SIMPLIFY_H_

#include "absl/types/span.h"
#include "compiler/graph/graph.h"
#include "compiler/ir/rewrite.h"

namespace kiln::graph {

// Returns the graph over the same context at the fixed point of SimplifyRules; source lines follow
// their nodes. A graph that still contains a kGradient is returned unchanged: a rewrite could cut
// the path from y to x.
Graph Simplify(const Graph& graph);

// All rows: constants, arithmetic, movement, reductions.
absl::Span<const ir::Rule> SimplifyRules();

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_SIMPLIFY_SIMPLIFY_H_
