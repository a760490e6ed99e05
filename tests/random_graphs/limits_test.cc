// Kernels of random graphs on a device with small limits.
#include "compiler/pipeline.h"
#include "gtest/gtest.h"
#include "tests/numerics/random/graph.h"

namespace kiln::random_graphs {
namespace {

TEST(RandomGraphs, KernelsStayWithinTheLimitsOfTheTarget) {
  drivers::Target target;
  target.limits.local_bytes_max = 64;
  target.limits.arguments_max = 12;
  size_t highest_arguments = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const numerics::RandomGraph random = numerics::MakeRandomGradientGraph(seed, 12);
    std::vector<compiler::PassReport> reports;
    const auto state = compiler::RunPasses(random.graph, target, {"", "partition"}, {}, &reports);
    ASSERT_TRUE(state.ok()) << "seed " << seed << ": " << state.status();
    for (const partition::Group& group : state->partition.groups) {
      int64_t bytes = 0;
      for (const partition::Local& local : group.locals) {
        const int64_t size = local.elements * ir::SizeOf(local.dtype);
        EXPECT_LE(size, target.limits.local_bytes_max) << "seed " << seed;
        bytes += size;
      }
      EXPECT_LE(bytes, 2 * target.limits.local_bytes_max) << "seed " << seed;
      const size_t arguments = group.reads.size() + group.writes.size() + group.updates.size();
      EXPECT_LE(arguments, static_cast<size_t>(target.limits.arguments_max)) << "seed " << seed;
      highest_arguments = std::max(highest_arguments, arguments);
    }
  }
  EXPECT_GE(highest_arguments, 10u);
}

}  // namespace
}  // namespace kiln::random_graphs
