// Compares compiled programs on the CPU driver with the reference interpreter: every op in the
// table in float32, float64, float16 and bfloat16, and its gradients.
//
// Tolerances are in random/graph.h. tests/random_graphs runs many and larger random graphs.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/random/graph.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

struct Parameter {
  Case test_case;
  DType dtype;
};

std::vector<Parameter> Parameters(bool differentiable_only) {
  std::vector<Parameter> parameters;
  for (const Case& test_case : Cases()) {
    if (differentiable_only && !test_case.differentiable) continue;
    bool has_float = false;
    for (const OperandSpec& operand : test_case.operands) {
      has_float = has_float || operand.dtype == DType::kInvalid;
    }
    parameters.push_back({test_case, DType::kFloat32});
    if (!has_float) continue;
    for (const DType dtype : {DType::kFloat64, DType::kFloat16, DType::kBFloat16}) {
      parameters.push_back({test_case, dtype});
    }
  }
  return parameters;
}

std::string ParameterName(const testing::TestParamInfo<Parameter>& info) {
  return absl::StrCat(info.param.test_case.name, "_", std::string(ir::Name(info.param.dtype)));
}

class OpTest : public testing::TestWithParam<Parameter> {};

TEST_P(OpTest, EqualsInterpreter) {
  const auto& [test_case, dtype] = GetParam();
  const auto graph = MakeGraph(test_case, dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ(Disagreement(*graph, OperandValues(test_case, dtype), ToleranceOf(dtype)), "")
      << graph::Print(*graph);
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpTest, testing::ValuesIn(Parameters(false)), ParameterName);

class OpGradientTest : public testing::TestWithParam<Parameter> {};

TEST_P(OpGradientTest, EqualsInterpreter) {
  const auto& [test_case, dtype] = GetParam();
  const auto graph = MakeGradientGraph(test_case, dtype, /*differentiate=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(test_case, dtype);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, dtype, 9));
  EXPECT_EQ(Disagreement(*graph, inputs, 2 * ToleranceOf(dtype)), "") << graph::Print(*graph);
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpGradientTest, testing::ValuesIn(Parameters(true)),
                         ParameterName);

}  // namespace
}  // namespace kiln::numerics
