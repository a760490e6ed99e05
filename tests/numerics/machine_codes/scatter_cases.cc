#include "tests/numerics/machine_codes/scatter_cases.h"

#include <algorithm>

#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/random/graph.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;

Case MakeCase(const ScatterCase& scatter, const std::string& mode, DType dtype) {
  // Products of many stay finite, and signed ones have both signs.
  const bool is_product = mode == "mul" && ir::IsFloat(dtype);
  const double low = is_product ? 0.9 : ir::IsSigned(dtype) || ir::IsFloat(dtype) ? -3 : 0;
  const double high = is_product ? 1.1 : dtype == DType::kBool ? 2 : 4;
  Case result;
  result.name = scatter.name;
  result.op = "scatter_elements";
  result.operands = {{scatter.x, low, high, dtype},
                     {scatter.index, scatter.low, scatter.high, DType::kInt32},
                     {scatter.values, low, high, dtype}};
  result.attributes = {{"mode", mode}, {"axis", scatter.axis}};
  return result;
}

}  // namespace

const std::vector<ScatterCase>& ScatterCases() {
  static const auto& cases = *new std::vector<ScatterCase>{
      {"few_destinations", {5, 3}, {100, 1}, {100, 3}, 0, -1, 6},
      {"histogram", {10}, {1100}, {1100}, 0, 0, 10},
      {"many_destinations", {350, 3}, {80, 1}, {80, 3}, 0, -9, 370},
      {"nowhere", {350, 3}, {80, 1}, {80, 3}, 0, 350, 500},
      {"lines", {2, 600, 2}, {2, 100, 1}, {2, 100, 2}, 1, 0, 9, true},
      {"lines_behind", {500, 3}, {70, 3}, {70, 3}, 0, -3, 500, true},
      {"nothing", {400, 3}, {0, 1}, {0, 3}, 0, 0, 1},
      {"one_destination", {1100}, {400}, {400}, 0, 7, 8, true},
      {"runs", {1100}, {1030}, {1030}, 0, 20, 60, true},
  };
  return cases;
}

const ScatterCase& FindScatterCase(const std::string& name) {
  const std::vector<ScatterCase>& cases = ScatterCases();
  return *std::find_if(cases.begin(), cases.end(),
                       [&](const ScatterCase& scatter) { return scatter.name == name; });
}

void ExpectScatterRight(const ScatterCase& scatter, const std::string& mode, DType dtype,
                        bool gradients, const RunGraph& run) {
  SCOPED_TRACE(scatter.name + " " + mode + " " + std::string(ir::Name(dtype)));
  const Case test_case = MakeCase(scatter, mode, dtype);
  const auto graph =
      gradients ? MakeGradientGraph(test_case, dtype, true) : MakeGraph(test_case, dtype);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(test_case, dtype);
  if (gradients) inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, dtype, 9));
  const auto expected = ops::Evaluate(graph->outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  const auto first = run(*graph, inputs);
  ASSERT_TRUE(first.ok()) << first.status();
  const auto second = run(*graph, inputs);
  ASSERT_TRUE(second.ok()) << second.status();
  ASSERT_EQ(first->outputs.size(), expected->size());
  const double tolerance = 5 * ToleranceOf(dtype);
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference(first->outputs[i], (*expected)[i], tolerance, tolerance), "")
        << "output " << i;
    EXPECT_EQ(first->outputs[i].bytes, second->outputs[i].bytes) << "output " << i;
  }
}

}  // namespace kiln::numerics
