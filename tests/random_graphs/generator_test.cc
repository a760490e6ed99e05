// The generator of random graphs.
#include "compiler/graph/verify.h"
#include "gtest/gtest.h"
#include "tests/numerics/random/graph.h"
#include "tests/random_graphs/trial.h"

namespace kiln::random_graphs {
namespace {

// Dimensions are drawn independently, and three of a thousand would be gigabytes.
TEST(RandomGraphs, TensorsHaveSomeThousandElementsAtMost) {
  constexpr int64_t kElementsMax = 10'000;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    Plan plan = PlanFor(seed);
    if (!plan.options.wide && !plan.options.special) continue;
    plan.options.steps = 1;
    const numerics::RandomGraph random = numerics::MakeRandomGraph(plan.options);
    const absl::Status legal = graph::Verify(random.graph);
    ASSERT_TRUE(legal.ok()) << "seed " << seed << ": " << legal;
    for (const graph::Input& input : random.graph.inputs) {
      EXPECT_LE(ir::NumElements(input.shape), kElementsMax) << "seed " << seed;
    }
    EXPECT_EQ(random.tolerances.size(), random.graph.outputs.size());
  }
}

}  // namespace
}  // namespace kiln::random_graphs
