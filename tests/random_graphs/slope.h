// Compares gradients with finite differences.
#ifndef KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_
#define KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "tests/numerics/random/graph.h"

namespace kiln::random_graphs {

// Compares slopes along a random direction: the slope from the gradients of a float64 graph (as
// MakeRandomGradientGraph makes it: a scalar and requests for its gradients), computed by the
// interpreter, and the difference quotient of the scalar. Returns nothing if there is no slope to
// compare: the quotients of two steps differ (a kink, a jump), gradients were left out, or ops
// define other gradients (with_derivative). Otherwise returns the difference, empty if there is
// none.
std::optional<std::string> SlopeDisagreement(const numerics::RandomGraph& random, uint64_t seed);

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_SLOPE_H_
