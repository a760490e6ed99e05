// Random graphs for comparing compiled programs with the interpreter.
#ifndef KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_
#define KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_

#include <cstdint>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

struct RandomGraph {
  graph::Graph graph;  // the outputs are the last value and two others
  std::vector<ops::HostTensor> inputs;
  // One value a step, each made from ones before it.
  std::vector<const ir::Node*> values;
};

// A graph of `steps` steps of all kinds (elementwise, reductions, movement, windows, gathers,
// contractions) over float32, int32 and bool with at most some hundred elements a tensor. It
// depends on `seed` alone, and the first values do not depend on `steps`.
//
// Made so that rounding stays rounding: floats stay within a few hundred, arguments of logarithms,
// roots and quotients stay away from 0, and only values that are exact in float32 are compared,
// truncated or made integers.
RandomGraph MakeRandomGraph(uint64_t seed, int steps);

// A random graph, and the gradients of the sum of its last float value with respect to its float
// inputs, as requests.
RandomGraph MakeRandomGradientGraph(uint64_t seed, int steps);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_
