// Compares the reference interpreter with PyTorch's results (tests/golden/op_values.txt, made by
// tests/numerics/cases/generate_golden), and checks that the graphs that the other tests of
// numerics compile are legal.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ir/spec.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"
#include "tests/numerics/random/graph.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using Golden = std::map<std::string, std::vector<double>>;

Golden ReadGolden() {
  Golden golden;
  std::ifstream file(KILN_TEST_DATA "/op_values.txt");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    std::string name;
    std::string value;
    fields >> name;
    // strtod parses "inf" and "nan", which streams do not.
    while (fields >> value) golden[name].push_back(std::strtod(value.c_str(), nullptr));
  }
  return golden;
}

const Golden& GoldenValues() {
  static const Golden& golden = *new Golden(ReadGolden());
  return golden;
}

class InterpreterTest : public testing::TestWithParam<Case> {};

TEST_P(InterpreterTest, EqualsPyTorch) {
  const Case& test_case = GetParam();
  const auto graph = MakeGraph(test_case, DType::kFloat64);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_TRUE(ir::Verify(ir::Level::kTensor, graph->outputs).ok())
      << ir::Verify(ir::Level::kTensor, graph->outputs);
  const auto result = ops::Evaluate(graph->outputs, OperandValues(test_case, DType::kFloat64));
  ASSERT_TRUE(result.ok()) << result.status();
  const auto golden = GoldenValues().find(test_case.name);
  ASSERT_NE(golden, GoldenValues().end()) << "run tests/numerics/cases/generate_golden";
  const std::vector<double>& expected = golden->second;
  const ops::HostTensor& actual = (*result)[0];
  ASSERT_EQ(actual.size(), static_cast<int64_t>(expected.size()));
  // float32 results (random numbers, casts) are accurate to float32's precision.
  const double tolerance = actual.dtype == DType::kFloat32 ? 2e-6 : 1e-13;
  for (int64_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual.Number(i), expected[i], tolerance * (1 + std::abs(expected[i])))
        << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, InterpreterTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(CasesTest, GradientGraphsAreLegal) {
  for (const Case& test_case : Cases()) {
    if (!test_case.differentiable) continue;
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const auto graph = MakeGradientGraph(test_case, dtype, /*differentiate=*/true);
      ASSERT_TRUE(graph.ok()) << test_case.name << ": " << graph.status();
      const absl::Status legal = ir::Verify(ir::Level::kTensor, graph->outputs);
      EXPECT_TRUE(legal.ok()) << test_case.name << ": " << legal;
    }
  }
}

TEST(CasesTest, CoverEveryOp) {
  std::map<std::string, int> uses;
  for (const Case& test_case : Cases()) ++uses[test_case.op];
  for (const ops::OpDef& op : ops::AllOps()) {
    const bool is_source = op.kind == ops::Kind::kSource;
    const bool is_request = op.name == "gradient" || op.name == "detach";
    if (is_source || is_request) continue;
    EXPECT_GT(uses[std::string(op.name)], 0) << op.name;
  }
}

TEST(RandomGraphTest, IsLegalAndFinite) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const RandomGraph random = MakeRandomGraph(seed, 30);
    const absl::Status legal = ir::Verify(ir::Level::kTensor, random.values);
    ASSERT_TRUE(legal.ok()) << seed << ": " << legal;
    const auto values = ops::Evaluate(random.values, random.inputs);
    ASSERT_TRUE(values.ok()) << seed << ": " << values.status();
    for (const ops::HostTensor& value : *values) {
      for (int64_t i = 0; i < value.size(); ++i) {
        ASSERT_TRUE(std::isfinite(value.Number(i))) << seed;
        ASSERT_TRUE(!ir::IsFloat(value.dtype) || std::abs(value.Number(i)) < 1000) << seed;
      }
    }
  }
}

TEST(RandomGraphTest, SameSeedSameGraph) {
  EXPECT_EQ(graph::Print(MakeRandomGraph(7, 20).graph), graph::Print(MakeRandomGraph(7, 20).graph));
  EXPECT_NE(graph::Print(MakeRandomGraph(7, 20).graph), graph::Print(MakeRandomGraph(8, 20).graph));
}

TEST(RandomGraphTest, GradientsAreLegal) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const RandomGraph random = MakeRandomGradientGraph(seed, 12);
    const auto graph = autodiff::Differentiate(random.graph);
    ASSERT_TRUE(graph.ok()) << seed << ": " << graph.status();
    const absl::Status legal = ir::Verify(ir::Level::kTensor, graph->outputs);
    ASSERT_TRUE(legal.ok()) << seed << ": " << legal;
    ASSERT_TRUE(ops::Evaluate(graph->outputs, random.inputs).ok()) << seed;
  }
}

}  // namespace
}  // namespace kiln::numerics
