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
  // One value a step, each computed from earlier ones.
  std::vector<const ir::Node*> values;
  // The allowed difference of each output of a compiled program from the interpreter's, absolute
  // plus relative: the tolerance of a single op, plus sixteen times the measured effect of rounding
  // on the value (sensitivity.h). Below kToleranceMax.
  std::vector<double> tolerances;
  std::vector<std::string> ops;  // the rows of the table, once for each application
};

inline constexpr double kToleranceMax = 0.05;

// The tolerance of one op, absolute plus relative: the interpreter rounds after every node and adds
// in double; a compiled kernel computes in the node's dtype, fuses multiplications with additions
// and adds in another order. For short floats: their last place, since both sides compute in more
// digits and round once.
double ToleranceOf(ir::DType dtype);

struct RandomGraphOptions {
  uint64_t seed = 0;
  int steps = 10;
  // Infinities, NaN, zeros of both signs, tensors without elements.
  bool special = false;
  // Dimensions larger than vectors, blocks and one thread's share, with and without a remainder.
  bool wide = false;
  // The only float dtype, or kInvalid for all; if set, no integers are made from floats.
  ir::DType only = ir::DType::kInvalid;
};

// Returns a graph of `steps` steps: elementwise, reductions, movement, windows, gathers,
// contractions and grafts, which apply any op of the table, as one of numerics::Cases() does, to
// values of the graph. All dtypes; at most some hundred elements a tensor, or some thousand if
// `wide`. Depends only on the options; the first values do not depend on `steps`.
//
// Rounding errors stay small: values that magnify them beyond kToleranceMax are dropped, floats
// stay within a few hundred, and only values that a compiled program must give bit for bit are
// compared, truncated or converted to integers.
RandomGraph MakeRandomGraph(const RandomGraphOptions& options);
RandomGraph MakeRandomGraph(uint64_t seed, int steps);

// Returns a random graph with requests for the gradients of the sum of its last float value with
// respect to its float inputs.
RandomGraph MakeRandomGradientGraph(const RandomGraphOptions& options);
RandomGraph MakeRandomGradientGraph(uint64_t seed, int steps);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_RANDOM_GRAPH_H_
