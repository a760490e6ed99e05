// The kernels of the table of cases with schedules for blocks of threads, chosen for a GPU and
// random: run on the host, they give the kernel's results, and no threads race.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/kernel/testing/interpret.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "compiler/schedule/testing/interpret.h"
#include "compiler/search/heuristics/thread_chooser.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/cases/thread_cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/kernels/proved_loops.h"
#include "tests/numerics/machine_codes/some_gpu.h"
#include "tests/numerics/random/graph.h"
#include "tests/numerics/random/threads.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using kernel::Kernel;
using ops::HostTensor;

// Runs the kernel with the schedule's loops on copies of `globals`. Returns what went wrong; empty
// if nothing.
std::string Disagreement(const Kernel& kernel, const schedule::Schedule& schedule,
                         const std::vector<HostTensor>& before,
                         const std::vector<HostTensor>& expected, double tolerance) {
  const auto loops = ProvedLoops(kernel, schedule);
  if (!loops.ok()) return loops.status().ToString();
  std::vector<HostTensor> actual = before;
  std::vector<HostTensor*> pointers;
  for (HostTensor& tensor : actual) pointers.push_back(&tensor);
  const absl::Status status = schedule::Interpret(*loops, pointers);
  if (!status.ok()) return absl::StrCat(status.ToString(), "\n", schedule::Print(*loops));
  for (size_t i = 0; i < actual.size(); ++i) {
    const std::string difference = Difference(actual[i], expected[i], tolerance, tolerance);
    if (!difference.empty()) return absl::StrCat("buffer ", i, ": ", difference);
  }
  return "";
}

// Runs each kernel of the graph with some schedules, then passes the kernel's own result to the
// next kernel.
absl::Status RunKernel(const Kernel& kernel, absl::Span<HostTensor* const> globals,
                       double tolerance, std::mt19937_64& random, int* kernels) {
  std::vector<HostTensor> before;
  for (const HostTensor* tensor : globals) before.push_back(*tensor);
  if (absl::Status status = kernel::Interpret(kernel, globals); !status.ok()) return status;
  std::vector<HostTensor> expected;
  for (const HostTensor* tensor : globals) expected.push_back(*tensor);
  ++*kernels;
  std::vector<schedule::Schedule> schedules = {search::ChooseThreads(kernel, SomeGpu())};
  if (auto drawn = RandomThreads(kernel, random)) schedules.push_back(*std::move(drawn));
  for (const schedule::Schedule& schedule : schedules) {
    const std::string wrong = Disagreement(kernel, schedule, before, expected, tolerance);
    if (wrong.empty()) continue;
    return absl::InternalError(
        absl::StrCat(wrong, "\n", kernel::Print(kernel), schedule::Print(schedule)));
  }
  return absl::OkStatus();
}

struct Parameter {
  Case test_case;
  bool gradient = false;
};

std::vector<Parameter> Parameters() {
  std::vector<Parameter> parameters;
  for (const Case& test_case : Cases()) {
    parameters.push_back({test_case, false});
    if (test_case.differentiable) parameters.push_back({test_case, true});
  }
  return parameters;
}

class BlocksTest : public testing::TestWithParam<Parameter> {};

TEST_P(BlocksTest, EqualKernels) {
  const auto& [test_case, gradient] = GetParam();
  const DType dtype = DType::kFloat32;
  const auto graph =
      gradient ? MakeGradientGraph(test_case, dtype, true) : MakeGraph(test_case, dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(test_case, dtype);
  if (gradient) inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, dtype, 9));
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(*graph, SomeGpu(), {}, {}, &reports);
  ASSERT_TRUE(state.ok()) << state.status();
  // Different ones for another --gtest_random_seed.
  std::mt19937_64 random(std::hash<std::string>()(test_case.name) +
                         static_cast<uint64_t>(testing::UnitTest::GetInstance()->random_seed()));
  int kernels = 0;
  const auto results = kernel::RunPartition(
      state->partition, inputs, [&](const Kernel& kernel, absl::Span<HostTensor* const> globals) {
        return RunKernel(kernel, globals, 2 * ToleranceOf(dtype), random, &kernels);
      });
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(kernels, state->partition.groups.size());
}

// Otherwise the tests above would run only single-threaded tasks.
TEST(RandomThreadsTest, DrawsBlocksForEachKind) {
  for (const ThreadCase& kind : ThreadCases()) {
    ir::Context context;
    const auto kernel = kernel::ParseKernel(kind.kernel, context);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    for (uint64_t seed = 0; seed < 20; ++seed) {
      std::mt19937_64 random(seed);
      EXPECT_TRUE(RandomThreads(*kernel, random).has_value()) << kind.name << ", seed " << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Table, BlocksTest, testing::ValuesIn(Parameters()), [](const auto& info) {
  return absl::StrCat(info.param.test_case.name, info.param.gradient ? "_gradient" : "");
});

}  // namespace
}  // namespace kiln::numerics
