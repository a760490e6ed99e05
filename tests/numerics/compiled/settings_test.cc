// Programs whose schedules are made from settings other than the heuristic's compute the same.
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/kernel/kernel.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/search/testing/random_setting.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

// Returns a random legal setting.
std::string SomeSetting(const std::string& kernel_text, const drivers::Target& target,
                        std::mt19937_64& random) {
  ir::Context context;
  const auto kernel = kernel::ParseKernel(kernel_text, context);
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  if (!kernel.ok()) return "";
  const search::Space space(
      *kernel, target,
      target.architecture == "x86-64" ? search::Machine::kLanes : search::Machine::kThreads);
  return search::Print(search::RandomSetting(space, random));
}

class SettingsRunTest : public testing::TestWithParam<const char*> {};

TEST_P(SettingsRunTest, EqualsInterpreter) {
  const auto test_case =
      absl::c_find_if(Cases(), [](const Case& one) { return one.name == GetParam(); });
  ASSERT_NE(test_case, Cases().end());
  const auto graph = MakeGradientGraph(*test_case, DType::kFloat32, /*differentiate=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(*test_case, DType::kFloat32);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, DType::kFloat32, 9));
  const auto differentiated = autodiff::Differentiate(*graph);
  ASSERT_TRUE(differentiated.ok()) << differentiated.status();
  const auto expected = ops::Evaluate(differentiated->outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  compiler::CompiledProgram untuned;
  ASSERT_TRUE(RunCompiled(*graph, inputs, &untuned).ok());
  if (untuned.kernels[0].schedule.empty())
    GTEST_SKIP() << "without schedules there are no settings";
  std::mt19937_64 random(1);
  int tuned_kernels = 0;
  for (int round = 0; round < 4; ++round) {
    const auto tuned = [&random](const std::string& kernel, const drivers::Target& target) {
      return std::optional(SomeSetting(kernel, target, random));
    };
    compiler::CompiledProgram program;
    const auto actual = RunTuned(*graph, inputs, tuned, &program);
    ASSERT_TRUE(actual.ok()) << actual.status();
    for (size_t i = 0; i < expected->size(); ++i)
      EXPECT_EQ(Difference((*actual)[i], (*expected)[i], 1e-4, 1e-4), "") << "output " << i;
    for (size_t i = 0; i < program.kernels.size(); ++i)
      tuned_kernels += program.kernels[i].schedule != untuned.kernels[i].schedule ? 1 : 0;
  }
  EXPECT_GT(tuned_kernels, 0);
}

INSTANTIATE_TEST_SUITE_P(Cases, SettingsRunTest,
                         testing::Values("matmul", "matmul_ragged", "linear", "conv2d",
                                         "attention_causal"));

}  // namespace
}  // namespace kiln::numerics
