#include "tests/numerics/random/graph.h"

#include "compiler/ir/double_bits.h"
#include "tests/numerics/random/generator.h"

namespace kiln::numerics {

double ToleranceOf(ir::DType dtype) {
  if (dtype == ir::DType::kFloat64) return 1e-12;
  const bool is_half = ir::IsShortFloat(dtype) && !ir::IsFloat8(dtype);
  return is_half ? ir::PowerOfTwo(-ir::FormatOf(dtype).mantissa_bits) : 2e-5;
}

RandomGraph MakeRandomGraph(const RandomGraphOptions& options) {
  Generator generator(options);
  for (int i = 0; i < options.steps; ++i) generator.Step();
  return generator.Finish();
}

RandomGraph MakeRandomGradientGraph(const RandomGraphOptions& options) {
  Generator generator(options);
  for (int i = 0; i < options.steps; ++i) generator.Step();
  return generator.FinishWithGradients();
}

RandomGraph MakeRandomGraph(uint64_t seed, int steps) {
  return MakeRandomGraph(RandomGraphOptions{.seed = seed, .steps = steps});
}

RandomGraph MakeRandomGradientGraph(uint64_t seed, int steps) {
  return MakeRandomGradientGraph(RandomGraphOptions{.seed = seed, .steps = steps});
}

}  // namespace kiln::numerics
