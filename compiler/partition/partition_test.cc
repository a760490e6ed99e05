#include "compiler/partition/partition.h"

#include <algorithm>

#include "compiler/graph/round_factors.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/op_def.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/partition/memory/order_groups.h"
#include "compiler/partition/normalize/normalize.h"
#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ir::DType;
using ir::Op;
using testing::HasSubstr;

class PartitionTest : public PartitionFixture {
 protected:
  int CountOps(Op op) {
    const graph::Graph normal = Normalize(graph_, target_);
    int count = 0;
    for (Node node : ir::TopologicalOrder(normal.outputs)) count += node->op() == op ? 1 : 0;
    return count;
  }
};

TEST_F(PartitionTest, AChainIsOneKernel) {
  Node x = Input({64, 64});
  for (int i = 0; i < 20; ++i) x = b_.Add(b_.Mul(x, 1.5), 2);
  EXPECT_EQ(Fused({x}).groups.size(), 1);
}

TEST_F(PartitionTest, ALongChainIsCut) {
  Node x = Input({64, 64});
  for (int i = 0; i < 5000; ++i) x = b_.Add(b_.Mul(x, 1.5), 2);
  const Partition partition = Fused({x});
  EXPECT_GT(partition.groups.size(), 10);
  EXPECT_LT(partition.groups.size(), 100);
}

// A rounded factor is stored rounded. If matrix units use it, it is stored before the last step of
// rounding, so that the kernel that reads it contains that step.
TEST_F(PartitionTest, TheLastStepOfRoundingIsLeftToMatrixUnits) {
  graph_.outputs = {Product(64, 32, 48)};
  graph_.float32_matmul_precision = graph::MatmulPrecision::kHigh;
  graph_ = graph::RoundFactors(graph_);
  for (const bool matrix : {false, true}) {
    target_.capabilities.matrix = matrix;
    std::vector<DType> between;
    for (const Tensor& tensor : Fused(graph_.outputs).tensors) {
      if (tensor.kind == Tensor::Kind::kIntermediate) between.push_back(tensor.dtype);
    }
    const DType wanted = matrix ? DType::kUInt32 : DType::kFloat32;
    EXPECT_THAT(between, testing::ElementsAre(wanted, wanted));
  }
}

TEST_F(PartitionTest, InputsAndDuplicatesAreCopies) {
  Node x = Input({4});
  Node y = b_.Neg(x);
  const Partition partition = Fused({x, y, y});
  EXPECT_EQ(partition.groups.size(), 1);
  ASSERT_EQ(partition.copies.size(), 2);
  EXPECT_EQ(partition.copies[0].tensor, 0);
  EXPECT_EQ(partition.copies[1].index, 2);
}

TEST_F(PartitionTest, EmptyTensorsNeedNoKernel) {
  Node empty = Input({0, 4});
  const Partition partition = Fused({b_.Neg(empty), b_.Sum(empty, {0}), b_.Sum(empty, {1})});
  EXPECT_EQ(partition.groups.size(), 1);
}

TEST_F(PartitionTest, AnExpensiveFactorIsStored) {
  Node a = b_.Exp(Input({64, 64}));
  Node c = Input({64, 64});
  Node product = b_.Mul(b_.Reshape(a, {64, 1, 64}), b_.Reshape(c, {1, 64, 64}));
  EXPECT_EQ(Fused({b_.Sum(product, {2})}).groups.size(), 2);
}

TEST_F(PartitionTest, APaddedFactorStaysAView) {
  Node a = b_.Pad(Input({64, 62}), {0, 0, 1, 1});
  Node c = Input({64, 64});
  Node product = b_.Mul(b_.Reshape(a, {64, 1, 64}), b_.Reshape(c, {1, 64, 64}));
  EXPECT_EQ(Fused({b_.Sum(product, {2})}).groups.size(), 1);
}

TEST_F(PartitionTest, ColumnsDoNotBecomeAGrid) {
  Node x = Input({512, 512});
  Node mean = b_.Mul(b_.Sum(x, {0}, true), 1.0 / 512);
  EXPECT_EQ(Fused({b_.Sub(x, mean)}).groups.size(), 2);
}

TEST_F(PartitionTest, FewLargeRowsAreNotAGrid) {
  Node x = Input({2, 1 << 20});
  Node mean = b_.Mul(b_.Sum(x, {1}, true), 1.0 / (1 << 20));
  EXPECT_GE(Fused({b_.Sub(x, mean)}).groups.size(), 2);
}

TEST_F(PartitionTest, SiblingsShareAPassOverTheirData) {
  Node x = Input({256, 512});
  const Partition partition = Fused({b_.Sum(x, {1}), b_.Sum(b_.Mul(x, x), {1})});
  ASSERT_EQ(partition.groups.size(), 1);
  EXPECT_EQ(partition.groups[0].stages.size(), 1);
}

TEST_F(PartitionTest, SmallIndependentWorkSharesAKernel) {
  std::vector<Node> outputs;
  for (int i = 0; i < 12; ++i) outputs.push_back(b_.Mul(Input({100 + i}), 2));
  EXPECT_EQ(Fused(outputs).groups.size(), 1);
}

TEST_F(PartitionTest, SumsOfSumsMerge) {
  Node x = Input({8, 9, 10});
  Fused({b_.Sum(b_.Permute(b_.Sum(x, {1}), {1, 0}), {0})});
  EXPECT_EQ(CountOps(Op::kReduceSum), 1);
}

TEST_F(PartitionTest, SumsOfRepeatedSumsDoNot) {
  Node x = Input({8, 9});
  Node sum = b_.Expand(b_.Sum(x, {1}, true), {8, 5});
  Fused({b_.Sum(sum, {0})});
  EXPECT_EQ(CountOps(Op::kReduceSum), 2);
}

TEST_F(PartitionTest, NormalizedGraphsMeanTheSame) {
  Node x = Input({2, 6, 6});
  // Windows as long as their stride, their adjoint, overlapping ones, and sums of sums through pads
  // and flips.
  Node windows = b_.Window(b_.Window(x, 1, 2, 2, 1), 2, 3, 3, 1);
  Node pooled = b_.Max(windows, {3, 4});
  Node spread = b_.Mul(windows, b_.Reshape(pooled, {2, 3, 2, 1, 1}));
  Node back = b_.Sum(b_.Unwindow(spread, 2, 7, 3, 1), {4}, true);
  Node overlapping = b_.Window(x, 2, 3, 1, 1);
  Node summed = b_.Sum(b_.Unwindow(b_.Mul(overlapping, overlapping), 2, 6, 1, 1), {3});
  Node nested = b_.Sum(b_.Flip(b_.Pad(b_.Sum(x, {2}), {0, 0, 1, 2}), {1}), {0});
  Node index = b_.Iota(DType::kInt32, {3}, 0);
  Node scattered = b_.Scatter(b_.Sum(x, {2}), index, b_.Slice(b_.Sum(x, {2}), 1, 0, 3), 1,
                              ir::ScatterMode::kAdd);
  graph_.outputs = {pooled, back, summed, nested, scattered};
  const graph::Graph normal = Normalize(graph_, target_);
  std::vector<double> values;
  for (int i = 0; i < 72; ++i) values.push_back((i * 37 % 19 - 9) / 4.0);
  const std::vector<ops::HostTensor> inputs = {
      ops::HostTensor::Of(DType::kFloat32, {2, 6, 6}, values)};
  const auto expected = ops::Evaluate(graph_.outputs, inputs);
  const auto actual = ops::Evaluate(normal.outputs, inputs);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    ASSERT_EQ((*actual)[i].shape, (*expected)[i].shape) << i;
    for (int64_t j = 0; j < (*actual)[i].size(); ++j) {
      EXPECT_EQ((*actual)[i].Float(j), (*expected)[i].Float(j)) << i;
    }
  }
}

int CountUpdates(const Partition& partition) {
  int count = 0;
  for (const Group& group : partition.groups) count += static_cast<int>(group.updates.size());
  return count;
}

TEST_F(PartitionTest, AScatterWritesOverWhatItsProducerMade) {
  Node index = Input({5}, DType::kInt64);
  Node x = b_.Mul(Input({9, 4}), 2);
  Node values = b_.Neg(Input({5, 4}));
  const Partition partition = Fused({b_.Scatter(x, index, values, 0, ir::ScatterMode::kAdd)});
  ASSERT_EQ(partition.groups.size(), 2) << Print(partition);
  EXPECT_EQ(partition.groups[0].writes, partition.groups[1].updates);
  EXPECT_THAT(partition.groups[1].writes, testing::IsEmpty());
  // The product and the negation are computed in place: the other tensors are inputs.
  EXPECT_EQ(partition.tensors.size(), 4);
}

TEST_F(PartitionTest, AChainOfScattersSharesATensorUntilSomebodyReads) {
  Node index = Input({5}, DType::kInt64);
  Node values = Input({5, 4});
  auto scatter = [&](Node x) { return b_.Scatter(x, index, values, 0, ir::ScatterMode::kSet); };
  Node x = Input({9, 4});
  Partition chain = Fused({scatter(scatter(scatter(x)))});
  EXPECT_EQ(chain.groups.size(), 4) << Print(chain);
  EXPECT_EQ(CountUpdates(chain), 3);
  EXPECT_EQ(chain.tensors.size(), 4);
  OrderGroups(&chain);
  EXPECT_EQ(Verify(chain, graph_), absl::OkStatus());
  Node first = scatter(x);
  Partition read = Fused({scatter(first), b_.Exp2(b_.Sum(first, {0}))});
  EXPECT_EQ(CountUpdates(read), 2);
  EXPECT_EQ(read.tensors.size(), 6) << Print(read);
  OrderGroups(&read);
  EXPECT_EQ(Verify(read, graph_), absl::OkStatus());
}

TEST_F(PartitionTest, VerifyFindsWhatIsWrittenOverTooLate) {
  Node index = Input({5}, DType::kInt64);
  Node y = b_.Scatter(Input({9, 400}), index, Input({5, 400}), 0, ir::ScatterMode::kSet);
  Partition partition = Fused({b_.Sum(b_.Mul(y, y), {1})});
  ASSERT_EQ(partition.groups.size(), 3) << Print(partition);
  std::swap(partition.groups[1], partition.groups[2]);
  EXPECT_THAT(std::string(Verify(partition, graph_).message()), HasSubstr("what others read"));
  std::swap(partition.groups[1], partition.groups[2]);
  std::swap(partition.groups[0], partition.groups[1]);
  EXPECT_THAT(std::string(Verify(partition, graph_).message()), HasSubstr("what is not made"));
}

TEST_F(PartitionTest, OneValueALineIsElementwise) {
  Node index = Input({300, 1}, DType::kInt64);
  Node zeros = b_.Full(DType::kFloat32, {300, 50}, 0);
  Node upstream = Input({300, 1});
  Node gradient = b_.ScatterElements(zeros, index, upstream, 1, ir::ScatterMode::kAdd);
  EXPECT_EQ(Fused({b_.Add(gradient, Input({300, 50}))}).groups.size(), 1);
}

TEST_F(PartitionTest, VerifyFindsWhatIsMissing) {
  Node x = Input({300, 300});
  Node product = b_.Mul(b_.Reshape(x, {300, 1, 300}), b_.Reshape(x, {1, 300, 300}));
  Node y = b_.Sum(product, {2});
  Partition partition =
      Fused({b_.Sum(b_.Mul(b_.Reshape(y, {300, 1, 300}), b_.Reshape(x, {1, 300, 300})), {2})});
  ASSERT_EQ(partition.groups.size(), 2);
  Partition swapped = partition;
  std::swap(swapped.groups[0], swapped.groups[1]);
  EXPECT_THAT(std::string(Verify(swapped, graph_).message()), HasSubstr("before it is made"));
  Partition missing = partition;
  missing.groups.pop_back();
  EXPECT_THAT(std::string(Verify(missing, graph_).message()), HasSubstr("written by no kernel"));
  Partition twice = partition;
  twice.groups.push_back(twice.groups.back());
  EXPECT_THAT(std::string(Verify(twice, graph_).message()), HasSubstr("exists already"));
}

// tests/scaling checks that the work is linear in the nodes.
TEST_F(PartitionTest, EqualLayersAreThreeKernelsEach) {
  Node x = Input({128, 256});
  std::vector<Node> outputs;
  for (int layer = 0; layer < 60; ++layer) {
    Node weight = Input({256, 256});
    Node product = b_.Mul(b_.Reshape(x, {128, 1, 256}), b_.Reshape(weight, {1, 256, 256}));
    Node y = b_.Add(b_.Reshape(b_.Sum(product, {2}), {128, 256}), Input({256}));
    Node mean = b_.Mul(b_.Sum(y, {1}, true), 1.0 / 256);
    Node centered = b_.Sub(y, mean);
    Node variance = b_.Mul(b_.Sum(b_.Mul(centered, centered), {1}, true), 1.0 / 256);
    x = b_.Mul(centered, b_.Reciprocal(b_.Sqrt(b_.Add(variance, 1e-5))));
    outputs.push_back(b_.Sum(x, {0}));
  }
  outputs.push_back(x);
  graph_.outputs = outputs;
  std::vector<compiler::PassReport> reports;
  const auto state = compiler::RunPasses(graph_, {}, {"normalize", "plan_memory"}, {}, &reports);
  ASSERT_TRUE(state.ok()) << state.status();
  EXPECT_EQ(state->partition.groups.size(), 180);
}

// The gradient of a variance sums centred values.
TEST_F(PartitionTest, WhatIsCentredSumsToZero) {
  Node x = Input({8, 64});
  Node scale = b_.Expand(Input({8, 1}), {8, 64});
  Node centred = b_.Sub(x, b_.Mul(b_.Sum(x, {1}, true), 1.0 / 64));
  Node weighted = b_.Neg(b_.Mul(scale, centred));
  graph_.outputs = {b_.Sum(b_.Add(weighted, weighted), {1})};
  EXPECT_EQ(CountOps(Op::kReduceSum), 1);
  Node other = b_.Mul(b_.Sum(x, {1}, true), 1.0 / 32);
  graph_.outputs = {b_.Sum(b_.Sub(x, other), {1})};
  EXPECT_EQ(CountOps(Op::kReduceSum), 2) << "this is no mean";
}

TEST_F(PartitionTest, ASumOfMultiplesFollowsFromTheSum) {
  Node x = Input({8, 64});
  Node scaled = b_.Mul(x, b_.Expand(Input({8, 1}), {8, 64}));
  graph_.outputs = {b_.Sum(x, {1}), b_.Sum(b_.Neg(scaled), {1})};
  EXPECT_EQ(CountOps(Op::kReduceSum), 1);
  graph_.outputs = {b_.Sum(x, {0}), b_.Sum(scaled, {0})};
  EXPECT_EQ(CountOps(Op::kReduceSum), 2) << "the factor changes along the sum";
}

// Uses the expansion of relu's row, so that the two cannot diverge.
TEST_F(PartitionTest, TheMaskOfAReluIsTakenFromItsResult) {
  Node x = Input({8, 64});
  const auto relu = ops::FindOp("relu")->expand(b_, {x}, {});
  ASSERT_TRUE(relu.ok());
  Node gradient = b_.Where((*relu)->operand(0), b_.Const(DType::kFloat32, 0), Input({8, 64}));
  graph_.outputs = {*relu, gradient};
  const graph::Graph normal = Normalize(graph_, target_);
  EXPECT_EQ(normal.outputs[1]->operand(0)->operand(0), normal.outputs[0]);
}

// Its zeros are different constants, and the mask is read before the second one.
TEST_F(PartitionTest, AChoiceWithMinusZeroIsNoRelu) {
  Node x = Input({8});
  Node zero = b_.Const(DType::kFloat32, 0);
  Node mask = b_.Binary(Op::kOr, b_.Less(x, zero), b_.Equal(x, zero));
  Node one = b_.Const(DType::kFloat32, 1);
  Node chosen = b_.Where(mask, one, b_.Const(DType::kFloat32, 2));
  graph_.outputs = {b_.Add(chosen, b_.Where(mask, b_.Const(DType::kFloat32, -0.0), x))};
  EXPECT_EQ(Normalize(graph_, target_).outputs.size(), 1);
}

// Both axes of a strided convolution's gradient become one sum, with stride 1.
TEST_F(PartitionTest, StridedUnwindowsBecomePhases) {
  Node x = Input({2, 5, 5, 3, 3});
  Node columns = b_.Sum(b_.Unwindow(x, 2, 11, 2, 1), {-1});
  graph_.outputs = {b_.Sum(b_.Unwindow(columns, 1, 12, 2, 1), {-1})};
  EXPECT_EQ(graph_.outputs[0]->shape(), (ir::Shape{2, 12, 11}));
  EXPECT_EQ(CountOps(Op::kReduceSum), 1);
  for (Node node : ir::TopologicalOrder(Normalize(graph_, target_).outputs)) {
    if (node->op() != Op::kUnwindow) continue;
    EXPECT_EQ(node->attr<ir::IntsAttr>().values[2], 1);
  }
}

}  // namespace
}  // namespace kiln::partition
