// Compares gradients, and gradients of gradients, of every op with central differences in float64.
#include <cmath>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "compiler/ops/testing/evaluate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/cases.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ops::HostTensor;

constexpr DType kDouble = DType::kFloat64;
// Rounding makes the difference quotient uncertain by about 1e-16 / kStep, curvature by kStep
// squared.
constexpr double kStep = 1e-5;
constexpr double kTolerance = 2e-6;

std::vector<Case> DifferentiableCases() {
  std::vector<Case> cases;
  for (const Case& test_case : Cases()) {
    if (test_case.differentiable) cases.push_back(test_case);
  }
  return cases;
}

double WeightedSum(const HostTensor& values, const HostTensor& weights) {
  double sum = 0;
  for (int64_t i = 0; i < values.size(); ++i) sum += values.Float(i) * weights.Float(i);
  return sum;
}

// d WeightedSum(root, weights) / d inputs[which][element], by a central difference.
double Quotient(const Node* root, std::vector<HostTensor> inputs, const HostTensor& weights,
                int which, int64_t element) {
  const double at = inputs[which].Float(element);
  inputs[which].SetFloat(element, at + kStep);
  const double above = WeightedSum((*ops::Evaluate({root}, inputs))[0], weights);
  inputs[which].SetFloat(element, at - kStep);
  const double below = WeightedSum((*ops::Evaluate({root}, inputs))[0], weights);
  return (above - below) / (2 * kStep);
}

// Every n-th element, so that large operands take little time.
int64_t Stride(const HostTensor& tensor) { return std::max<int64_t>(1, tensor.size() / 24); }

// Returns true if an op reads one half of symmetric matrices and distributes its gradient to both
// halves.
bool ReadsOneHalf(const Case& test_case) { return test_case.op == "cholesky"; }

// Returns the index of a square matrix' element with row and column exchanged.
int64_t Mirrored(const HostTensor& tensor, int64_t element) {
  const int64_t size = tensor.shape.back();
  const int64_t row = element / size % size;
  const int64_t column = element % size;
  return element + (column - row) * size + row - column;
}

void ExpectDerivative(const Case& test_case, const Node* value, const Node* derivative,
                      const std::vector<HostTensor>& inputs, const HostTensor& weights, int which) {
  const auto computed = ops::Evaluate({derivative}, inputs);
  ASSERT_TRUE(computed.ok()) << computed.status();
  ASSERT_EQ((*computed)[0].shape, inputs[which].shape);
  for (int64_t i = 0; i < inputs[which].size(); i += Stride(inputs[which])) {
    double expected = Quotient(value, inputs, weights, which, i);
    if (ReadsOneHalf(test_case)) {
      const int64_t mirrored = Mirrored(inputs[which], i);
      expected = (expected + Quotient(value, inputs, weights, which, mirrored)) / 2;
    }
    ASSERT_NEAR((*computed)[0].Float(i), expected, kTolerance * (1 + std::abs(expected)))
        << "operand " << which << ", element " << i;
  }
}

class GradientTest : public testing::TestWithParam<Case> {};

TEST_P(GradientTest, EqualsCentralDifference) {
  const Case& test_case = GetParam();
  const auto graph = MakeGradientGraph(test_case, kDouble, /*differentiate=*/true);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<HostTensor> inputs = OperandValues(test_case, kDouble);
  const HostTensor upstream = OperandValue({graph->inputs.back().shape, -1, 1}, kDouble, 9);
  inputs.push_back(upstream);
  size_t output = 1;
  for (size_t i = 0; i < test_case.operands.size(); ++i) {
    if (!ir::IsFloat(inputs[i].dtype)) continue;
    ExpectDerivative(test_case, graph->outputs[0], graph->outputs[output++], inputs, upstream,
                     static_cast<int>(i));
  }
  EXPECT_EQ(output, graph->outputs.size());
}

// The gradient of the weighted sum of the first gradient, with respect to each operand.
TEST_P(GradientTest, OfGradientEqualsCentralDifference) {
  const Case& test_case = GetParam();
  auto graph = MakeGradientGraph(test_case, kDouble, /*differentiate=*/false);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ops::Builder builder(*graph->context);
  const Node* first = graph->outputs[1];
  std::vector<HostTensor> inputs = OperandValues(test_case, kDouble);
  inputs.push_back(OperandValue({graph->inputs.back().shape, -1, 1}, kDouble, 9));
  const HostTensor weights = OperandValue({first->shape(), -1, 1}, kDouble, 5);
  const auto weights_index = static_cast<int64_t>(graph->inputs.size());
  graph->inputs.push_back({kDouble, first->shape()});
  inputs.push_back(weights);
  const Node* seed = builder.Input(weights_index, kDouble, first->shape());
  graph->outputs = {first};
  std::vector<int> operands;
  for (size_t i = 0; i < test_case.operands.size(); ++i) {
    if (!ir::IsFloat(inputs[i].dtype)) continue;
    const Node* x = builder.Input(static_cast<int64_t>(i), kDouble, inputs[i].shape);
    graph->outputs.push_back(
        builder.context().Get(ir::Op::kGradient, kDouble, x->shape(), {first, x, seed}));
    operands.push_back(static_cast<int>(i));
  }
  const auto result = autodiff::Differentiate(*graph);
  ASSERT_TRUE(result.ok()) << result.status();
  for (size_t i = 0; i < operands.size(); ++i) {
    ExpectDerivative(test_case, result->outputs[0], result->outputs[i + 1], inputs, weights,
                     operands[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, GradientTest, testing::ValuesIn(DifferentiableCases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
