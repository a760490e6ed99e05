// Compiled programs on the CPU driver against the reference interpreter: every op in the table in
// float32, float64, float16 and bfloat16, its gradients, and random graphs.
//
// Tolerances: the interpreter rounds after every node and adds in double; a compiled kernel works
// in the node's dtype, fuses multiplications with additions and adds in another order. For float32
// that stays below 2e-5, absolute or relative, on these small tensors; for float64 below 1e-12
// (second row of kTolerances). Random graphs chain up to 30 ops, each of which may magnify what
// came before, so they are allowed 1e-3.
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases.h"
#include "tests/numerics/random_graph.h"
#include "tests/numerics/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

// Short floats: their last place, since both sides compute in more digits and round once.
double Tolerance(DType dtype) {
  switch (dtype) {
    case DType::kFloat64:
      return 1e-12;
    case DType::kFloat16:
      return 0x1p-10;
    case DType::kBFloat16:
      return 0x1p-7;
    default:
      return 2e-5;
  }
}

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
  EXPECT_EQ(Disagreement(*graph, OperandValues(test_case, dtype), Tolerance(dtype)), "")
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
  EXPECT_EQ(Disagreement(*graph, inputs, 2 * Tolerance(dtype)), "") << graph::Print(*graph);
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpGradientTest, testing::ValuesIn(Parameters(true)),
                         ParameterName);

constexpr double kRandomTolerance = 1e-3;

// The first value of the graph that is wrong on its own, with the graph that computes it alone.
std::string Smallest(const RandomGraph& random) {
  for (const ir::Node* value : random.values) {
    graph::Graph graph = random.graph;
    graph.outputs = {value};
    const std::string wrong = Disagreement(graph, random.inputs, kRandomTolerance);
    if (!wrong.empty()) return absl::StrCat(wrong, "\nin\n", graph::Print(graph));
  }
  return "only all outputs together are wrong";
}

class RandomGraphTest : public testing::TestWithParam<int> {};

TEST_P(RandomGraphTest, EqualsInterpreter) {
  const int steps = 3 + GetParam() % 28;
  const RandomGraph random = MakeRandomGraph(GetParam(), steps);
  const std::string wrong = Disagreement(random.graph, random.inputs, kRandomTolerance);
  EXPECT_EQ(wrong, "") << "smallest: " << Smallest(random) << "\nwhole:\n"
                       << graph::Print(random.graph);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGraphTest, testing::Range(0, 120));

class RandomGradientTest : public testing::TestWithParam<int> {};

TEST_P(RandomGradientTest, EqualsInterpreter) {
  const RandomGraph random = MakeRandomGradientGraph(GetParam(), 2 + GetParam() % 10);
  EXPECT_EQ(Disagreement(random.graph, random.inputs, kRandomTolerance), "")
      << graph::Print(random.graph);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomGradientTest, testing::Range(1000, 1060));

}  // namespace
}  // namespace kiln::numerics
