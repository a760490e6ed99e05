// Random graphs for comparing compiled programs with the interpreter.
#ifndef KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_
#define KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::numerics {

struct RandomGraph {
  graph::Graph graph;  // the outputs are all values that no other value uses, and two others
  std::vector<ops::HostTensor> inputs;
  // One value a step, each made from ones before it.
  std::vector<const ir::Node*> values;
  // How far each output of a compiled program may be from the interpreter's, absolute plus
  // relative: the tolerance of a single op, and sixteen times what rounding was measured to move
  // the value (sensitivity.h). Below kMostTolerance.
  std::vector<double> tolerances;
  std::vector<std::string> ops;  // the rows of the table that were applied, once for each time
};

inline constexpr double kMostTolerance = 0.05;

// Of one op, absolute plus relative: the interpreter rounds after every node and adds in double, a
// compiled kernel works in the node's dtype, fuses multiplications with additions and adds in
// another order. Short floats: their last place, since both sides compute in more digits and round
// once.
double ToleranceOf(ir::DType dtype);

struct RandomGraphOptions {
  uint64_t seed = 0;
  int steps = 10;
  // Infinities, NaN, zeros of either sign, tensors without elements.
  bool special = false;
  // Dimensions beyond vectors, blocks and what one thread takes, with and without a rest.
  bool wide = false;
  // The only float dtype, or kInvalid for all; no integers are made of floats then.
  ir::DType only = ir::DType::kInvalid;
};

// A graph of `steps` steps: elementwise, reductions, movement, windows, gathers, contractions and
// grafts, which apply any op of the table as one of numerics::Cases() does to values of the graph.
// All dtypes; at most some hundred elements a
// tensor, or some thousand. It depends on the options alone, and the
// first values do not depend on `steps`.
//
// Made so that rounding stays rounding: values that magnify it beyond kMostTolerance are dropped,
// floats stay within a few hundred, and only values whose very bits a compiled program must give
// are compared, truncated or made integers.
RandomGraph MakeRandomGraph(const RandomGraphOptions& options);
RandomGraph MakeRandomGraph(uint64_t seed, int steps);

// A random graph, and the gradients of the sum of its last float value with respect to its float
// inputs, as requests.
RandomGraph MakeRandomGradientGraph(const RandomGraphOptions& options);
RandomGraph MakeRandomGradientGraph(uint64_t seed, int steps);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_
