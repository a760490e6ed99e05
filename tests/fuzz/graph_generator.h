// Random graphs of the wire, out of the table of ops: mostly right, so that they get past the first
// check.
#ifndef KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_
#define KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_

#include "kiln/v1/graph.pb.h"
#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// A graph of up to `max_nodes` nodes over small tensors, with every op of the table among what may
// come. Most graphs are accepted (a node that the decoder rejects is drawn again). Dimensions may
// be variables, each bounded by 1 and 4.
v1::Graph RandomGraph(Random& random, int max_nodes);

// One to three things of a graph changed: an operand, an op, a dtype, an attribute's value, name or
// type, an output, an update, a variable, the order of nodes.
void MutateGraph(Random& random, v1::Graph* graph);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_GRAPH_GENERATOR_H_
