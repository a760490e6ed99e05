// Random layers with sizes as in real networks.
#ifndef KILN_TESTS_FULL_SIZE_RANDOM_LAYER_H_
#define KILN_TESTS_FULL_SIZE_RANDOM_LAYER_H_

#include <cstdint>
#include <random>
#include <string>

namespace kiln::full_size {

// Returns a line as layer.h parses it: contractions with either operand transposed, convolutions of
// any stride, padding, dilation and groups in one to three dimensions, transposed ones, pools,
// rows, reductions, permutations, elementwise chains, scatters. Sizes are mostly round, often odd.
std::string RandomLayer(std::mt19937_64& random);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_RANDOM_LAYER_H_
