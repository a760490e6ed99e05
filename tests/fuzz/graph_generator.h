// Random wire graphs from the table of ops: mostly valid, so that they pass the first checks.
#ifndef KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_
#define KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_

#include "kiln/v1/graph.pb.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// Returns a graph of up to `nodes_max` nodes over small tensors; every op of the table may occur.
// Most graphs are accepted (a node that the decoder rejects is drawn again). Dimensions may be
// variables, each with the bounds 1 and 4.
v1::Graph RandomGraph(Random& random, int nodes_max);

// Changes one to three parts of a graph: an operand, an op, a dtype, an attribute's value, name or
// type, an output, an update, a variable, the order of nodes.
void MutateGraph(Random& random, v1::Graph* graph);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_
