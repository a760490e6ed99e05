#include "compiler/autodiff/differentiate.h"

#include <cmath>
#include <memory>

#include "compiler/graph/error.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::autodiff {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ops::HostTensor;
using testing::HasSubstr;

class DifferentiateTest : public testing::Test {
 protected:
  const Node* Input(DType dtype, const ir::Shape& shape) {
    graph_.inputs.push_back({dtype, shape});
    return b_.Input(static_cast<int64_t>(graph_.inputs.size()) - 1, dtype, shape);
  }
  const Node* Scalar() { return Input(DType::kFloat64, {}); }

  const Node* Request(const Node* y, const Node* x) {
    return b_.context().Get(Op::kGradient, x->dtype(), x->shape(), {y, x});
  }
  const Node* Request(const Node* y, const Node* x, const Node* upstream) {
    return b_.context().Get(Op::kGradient, x->dtype(), x->shape(), {y, x, upstream});
  }

  // Returns the first element of each output for scalar inputs.
  std::vector<double> Values(const std::vector<double>& inputs) {
    const auto result = Differentiate(graph_);
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<HostTensor> tensors;
    for (const double input : inputs) {
      tensors.push_back(HostTensor::Of(DType::kFloat64, {}, {input}));
    }
    const auto outputs = ops::Evaluate(result->outputs, tensors);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    std::vector<double> values;
    for (const HostTensor& output : *outputs) values.push_back(output.Float(0));
    return values;
  }

  absl::Status Error() { return Differentiate(graph_).status(); }

  std::shared_ptr<ir::Context> context_ = std::make_shared<ir::Context>();
  graph::Graph graph_{.context = context_,
                      .inputs = {},
                      .outputs = {},
                      .updates = {},
                      .sharding = {},
                      .sources = {}};
  ops::Builder b_{*context_};
};

TEST_F(DifferentiateTest, TooManyNestedRequestsAreRefused) {
  const Node* x = Scalar();
  const Node* y = b_.Mul(b_.Exp2(b_.Mul(b_.Sin(x), x)), x);
  for (int i = 0; i < 60; ++i) y = Request(y, x);
  graph_.outputs = {y};
  const absl::Status error = Error();
  EXPECT_EQ(error.code(), absl::StatusCode::kInvalidArgument) << error;
  EXPECT_EQ(graph::ErrorDetail(error, "reason"), "TOO_LARGE");
  EXPECT_THAT(std::string(error.message()), HasSubstr("nest fewer"));
}

TEST_F(DifferentiateTest, SumsOverAllUses) {
  const Node* x = Scalar();
  const Node* y = b_.Add(b_.Mul(x, x), b_.Mul(x, 3.0));
  graph_.outputs = {Request(y, x)};
  EXPECT_THAT(Values({5}), testing::ElementsAre(2 * 5 + 3));
}

TEST_F(DifferentiateTest, SeveralRequestsOfOneTarget) {
  const Node* x = Scalar();
  const Node* z = Scalar();
  const Node* product = b_.Mul(x, z);
  const Node* y = b_.Mul(product, product);
  graph_.outputs = {Request(y, x), Request(y, z), Request(y, product), Request(y, y)};
  EXPECT_THAT(Values({2, 3}), testing::ElementsAre(2 * 6 * 3, 2 * 6 * 2, 2 * 6, 1));
}

TEST_F(DifferentiateTest, UnrelatedIsZeros) {
  const Node* x = Scalar();
  const Node* z = Input(DType::kFloat32, {2, 3});
  graph_.outputs = {Request(b_.Mul(x, x), z)};
  const auto result = Differentiate(graph_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto value = ops::Evaluate(result->outputs, {});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].shape, (ir::Shape{2, 3}));
  EXPECT_EQ((*value)[0].dtype, DType::kFloat32);
  for (int i = 0; i < 6; ++i) EXPECT_EQ((*value)[0].Float(i), 0);
}

// y does not depend on an x that is computed from y.
TEST_F(DifferentiateTest, WithRespectToWhatComesAfterIsZero) {
  const Node* x = Scalar();
  const Node* y = b_.Mul(x, x);
  graph_.outputs = {Request(y, b_.Mul(y, 2.0)), Request(y, x)};
  EXPECT_THAT(Values({3}), testing::ElementsAre(0, 6));
}

TEST_F(DifferentiateTest, GradientsOfGradients) {
  const Node* x = Scalar();
  const Node* cube = b_.Mul(x, b_.Mul(x, x));
  const Node* first = Request(cube, x);
  const Node* second = Request(first, x);
  const Node* third = Request(second, x);
  graph_.outputs = {cube, first, second, third, Request(third, x)};
  EXPECT_THAT(Values({2}), testing::ElementsAre(8, 12, 12, 6, 0));
}

// y is 10 here, but its derivative is that of x cubed, and so is its second derivative.
TEST_F(DifferentiateTest, WithDerivative) {
  const Node* x = Scalar();
  const Node* slope = b_.Mul(b_.Mul(x, x), 3.0);
  const Node* y = b_.WithDerivative(b_.Detach(b_.Mul(x, 5.0)), x, slope);
  const Node* first = Request(y, x);
  graph_.outputs = {y, first, Request(first, x)};
  EXPECT_THAT(Values({2}), testing::ElementsAre(10, 12, 12));
}

// A gradient used inside the value of another, as in a gradient penalty.
TEST_F(DifferentiateTest, GradientInsideLoss) {
  const Node* x = Scalar();
  const Node* w = Scalar();
  const Node* y = b_.Mul(w, b_.Mul(x, x));
  const Node* slope = Request(y, x);                      // 2 w x
  const Node* loss = b_.Add(y, b_.Mul(slope, slope));     // w x² + 4 w² x²
  graph_.outputs = {Request(loss, w), Request(loss, x)};  // x² + 8 w x², 2 w x + 8 w² x
  EXPECT_THAT(Values({3, 2}), testing::ElementsAre(9 + 8 * 2 * 9, 2 * 2 * 3 + 8 * 4 * 3));
}

TEST_F(DifferentiateTest, UpstreamWeighs) {
  const Node* x = Input(DType::kFloat64, {3});
  const Node* weights = Input(DType::kFloat64, {3});
  graph_.outputs = {Request(b_.Mul(x, x), x, weights)};
  const auto result = Differentiate(graph_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto value =
      ops::Evaluate(result->outputs, {HostTensor::Of(DType::kFloat64, {3}, {1, 2, 3}),
                                      HostTensor::Of(DType::kFloat64, {3}, {1, 10, 100})});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].Float(0), 2);
  EXPECT_EQ((*value)[0].Float(1), 40);
  EXPECT_EQ((*value)[0].Float(2), 600);
}

TEST_F(DifferentiateTest, DetachStopsAndGoes) {
  const Node* x = Scalar();
  const Node* y = b_.Mul(b_.Detach(x), x);
  graph_.outputs = {Request(y, x), b_.Detach(x)};
  EXPECT_THAT(Values({5}), testing::ElementsAre(5, 5));
  for (const Node* node : ir::TopologicalOrder(Differentiate(graph_)->outputs)) {
    EXPECT_NE(node->op(), Op::kDetach);
    EXPECT_NE(node->op(), Op::kGradient);
  }
}

TEST_F(DifferentiateTest, FlowsThroughFloatCastsOnly) {
  const Node* x = Scalar();
  const Node* through = b_.Cast(b_.Cast(x, DType::kFloat32), DType::kFloat64);
  const Node* whole = b_.Cast(b_.Cast(x, DType::kInt32), DType::kFloat64);
  graph_.outputs = {Request(b_.Mul(through, 3.0), x), Request(b_.Mul(whole, 3.0), x)};
  EXPECT_THAT(Values({2}), testing::ElementsAre(3, 0));
}

TEST_F(DifferentiateTest, EqualLargestShare) {
  const Node* x = Input(DType::kFloat64, {4});
  graph_.outputs = {Request(b_.Max(x, {0}), x)};
  const auto result = Differentiate(graph_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto value =
      ops::Evaluate(result->outputs, {HostTensor::Of(DType::kFloat64, {4}, {7, 1, 7, 0})});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].Float(0), 0.5);
  EXPECT_EQ((*value)[0].Float(1), 0);
  EXPECT_EQ((*value)[0].Float(2), 0.5);
}

TEST_F(DifferentiateTest, PowerAtZero) {
  const Node* x = Scalar();
  const Node* p = Scalar();
  const Node* y = b_.Binary(Op::kPow, x, p);
  graph_.outputs = {Request(y, x), Request(y, p)};
  EXPECT_THAT(Values({0, 0}), testing::ElementsAre(0, 0));
  EXPECT_THAT(Values({0, 1}), testing::ElementsAre(1, 0));
  EXPECT_THAT(Values({0, 2}), testing::ElementsAre(0, 0));
}

TEST_F(DifferentiateTest, UpdatesAreRewrittenToo) {
  const Node* x = Scalar();
  graph_.updates = {{0, b_.Sub(x, Request(b_.Mul(x, x), x))}};
  const auto result = Differentiate(graph_);
  ASSERT_TRUE(result.ok()) << result.status();
  const auto value =
      ops::Evaluate({result->updates[0].value}, {HostTensor::Of(DType::kFloat64, {}, {3})});
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ((*value)[0].Float(0), -3);
}

// Recursion anywhere would overflow the stack.
TEST_F(DifferentiateTest, DeepChain) {
  const Node* x = Scalar();
  const Node* y = x;
  for (int i = 0; i < 50'000; ++i) y = b_.Add(b_.Neg(y), 1.0);
  graph_.outputs = {Request(y, x)};
  EXPECT_THAT(Values({5}), testing::ElementsAre(1));
}

// y = sum((A B)): each gradient is again one sum of one product of views, the form that the
// compiler recognises as a contraction.
TEST_F(DifferentiateTest, GradientOfMatmulIsContraction) {
  const Node* a = Input(DType::kFloat32, {8, 16});
  const Node* bt = Input(DType::kFloat32, {4, 16});
  const Node* product = b_.Sum(b_.Mul(b_.Reshape(a, {8, 1, 16}), b_.Reshape(bt, {1, 4, 16})), {-1});
  const Node* upstream = Input(DType::kFloat32, {8, 4});
  graph_.outputs = {Request(product, a, upstream), Request(product, bt, upstream)};
  const auto result = Differentiate(graph_);
  ASSERT_TRUE(result.ok()) << result.status();
  for (const Node* gradient : result->outputs) {
    int sums = 0;
    int products = 0;
    for (const Node* node : ir::TopologicalOrder({gradient})) {
      sums += node->op() == Op::kReduceSum;
      products += node->op() == Op::kMul;
    }
    EXPECT_EQ(sums, 1);
    EXPECT_EQ(products, 1);
  }
}

TEST_F(DifferentiateTest, ErrorsNameTheRequest) {
  const Node* x = Input(DType::kFloat32, {3});
  const Node* request = Request(b_.Mul(x, x), x);
  graph_.outputs = {request};
  graph_.sources[request] = "train.py:31";
  EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Error().message()),
              testing::AllOf(HasSubstr("train.py:31"), HasSubstr("scalar"), HasSubstr("(3,)")));
  EXPECT_EQ(graph::ErrorDetail(Error(), "reason"), "SHAPE_MISMATCH");
}

TEST_F(DifferentiateTest, IntegersHaveNoGradient) {
  const Node* x = Input(DType::kInt32, {});
  graph_.outputs = {Request(b_.Cast(x, DType::kFloat32), x)};
  EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Error().message()), HasSubstr("respect to int32()"));
}

TEST_F(DifferentiateTest, UpstreamMustFit) {
  const Node* x = Input(DType::kFloat32, {3});
  graph_.outputs = {Request(b_.Mul(x, x), x, Input(DType::kFloat32, {4}))};
  EXPECT_EQ(Error().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Error().message()), HasSubstr("float32(4,)"));
}

}  // namespace
}  // namespace kiln::autodiff
