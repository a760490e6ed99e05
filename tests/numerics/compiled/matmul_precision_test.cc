// Compares compiled contractions and their gradients, with factors rounded to tf32, with the
// interpreter's results for the graph that contains that rounding.
#include <string>

#include "absl/algorithm/container.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/round_factors.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/tf32.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

struct PrecisionCase {
  const char* name;
  double tolerance = 1e-5;
};

constexpr PrecisionCase kCases[] = {
    {"matmul"},
    {"matmul_batched"},
    {"matmul_ragged"},
    {"linear"},
    {"einsum_batched"},
    {"conv2d"},
    {"conv2d_strided"},
    // One product's result is rounded for the next: a difference in the last bit may become one of
    // tf32.
    {"attention_causal", 2e-3},
};

class MatmulPrecisionTest : public testing::TestWithParam<PrecisionCase> {};

TEST_P(MatmulPrecisionTest, EqualsInterpreter) {
  const auto test_case =
      absl::c_find_if(Cases(), [](const Case& one) { return one.name == GetParam().name; });
  ASSERT_NE(test_case, Cases().end());
  auto graph = MakeGradientGraph(*test_case, DType::kFloat32, /*differentiate=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  graph->float32_matmul_precision = graph::MatmulPrecision::kHigh;
  std::vector<HostTensor> inputs = OperandValues(*test_case, DType::kFloat32);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, DType::kFloat32, 9));
  const auto differentiated = autodiff::Differentiate(*graph);
  ASSERT_TRUE(differentiated.ok()) << differentiated.status();
  const graph::Graph rounded = graph::RoundFactors(*differentiated);
  // Both operands and the upstream gradient.
  EXPECT_GE(absl::c_count_if(ir::TopologicalOrder(rounded.outputs), ir::IsRoundedToTf32), 3);
  const auto expected = ops::Evaluate(rounded.outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto actual = RunCompiled(*graph, inputs);
  ASSERT_TRUE(actual.ok()) << actual.status();
  const double tolerance = GetParam().tolerance;
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference((*actual)[i], (*expected)[i], tolerance, tolerance), "") << "output " << i;
  }
  // Without rounding they would not be equal.
  const auto exact = ops::Evaluate(differentiated->outputs, inputs);
  ASSERT_TRUE(exact.ok()) << exact.status();
  EXPECT_NE(Difference((*actual)[0], (*exact)[0], 1e-6, 1e-6), "");
}

INSTANTIATE_TEST_SUITE_P(All, MatmulPrecisionTest, testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace kiln::numerics
