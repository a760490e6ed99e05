// One random graph, compiled and compared with the interpreter.
#ifndef KILN_TESTS_RANDOM_GRAPHS_TRIAL_H_
#define KILN_TESTS_RANDOM_GRAPHS_TRIAL_H_

#include <cstdint>
#include <string>

#include "tests/numerics/random/graph.h"

namespace kiln::random_graphs {

// The plan for a seed: most graphs have up to 23 steps, which are some hundred nodes, one in 32 has
// 200; one in five requests gradients, one in eight has larger dimensions, one in sixteen
// infinities, NaN and tensors without elements.
struct Plan {
  numerics::RandomGraphOptions options;
  bool gradients = false;
  bool slopes = false;  // gradients in float64, compared with finite differences too
};
Plan PlanFor(uint64_t seed);

struct Trial {
  numerics::RandomGraph random;
  size_t kernels = 0;
  bool has_slope = false;  // gradients were compared with finite differences
  std::string failure;     // empty, or the defect with the shrunken graph
};

// Runs a trial; shrinks a failing graph.
Trial TryOne(uint64_t seed);

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_TRIAL_H_
