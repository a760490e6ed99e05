#include "tests/numerics/random_graph.h"

#include "tests/numerics/random_generator.h"

namespace kiln::numerics {

double ToleranceOf(ir::DType dtype) {
  switch (dtype) {
    case ir::DType::kFloat64:
      return 1e-12;
    case ir::DType::kFloat16:
      return 0x1p-10;
    case ir::DType::kBFloat16:
      return 0x1p-7;
    default:
      return 2e-5;
  }
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
