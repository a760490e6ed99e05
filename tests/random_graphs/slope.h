// Gradients against finite differences.
#ifndef KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_
#define KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tests/numerics/random_graph.h"

namespace kiln::random_graphs {

// Along a random direction: the slope by the gradients of a graph of float64 (as
// MakeRandomGradientGraph makes it: a scalar and requests for its gradients), as the interpreter
// has them, against the difference quotient of the scalar. Nothing where there is no slope to
// compare: quotients of two steps are apart (a kink, a jump), gradients were left out, or ops mean
// them to be others (with_derivative). Else what is wrong, or an empty text.
std::optional<std::string> SlopeDisagreement(const numerics::RandomGraph& random, uint64_t seed);

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_
