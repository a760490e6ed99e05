// Tests factors of contractions in the text form, before and after the pass, and the rounding of
// numbers.
#include "compiler/graph/round_factors.h"

#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/tf32.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::graph {
namespace {

using ir::DType;
using ir::Node;
using ops::Builder;

std::string Rounded(std::string_view text) {
  absl::StatusOr<Graph> graph = Parse(text);
  if (!graph.ok()) return graph.status().ToString();
  const Graph rounded = RoundFactors(*graph);
  if (absl::Status legal = Verify(rounded); !legal.ok()) return legal.ToString();
  return Print(rounded);
}

constexpr std::string_view kMatmul = R"(input 0 float32[2,4]
input 1 float16[3,4]
%0 = input float32[2,4] index=0
%1 = reshape float32[2,1,4] %0
%2 = expand float32[2,3,4] %1
%3 = input float16[3,4] index=1
%4 = cast float32[3,4] %3
%5 = reshape float32[1,3,4] %4
%6 = expand float32[2,3,4] %5
%7 = mul float32[2,3,4] %2 %6
%8 = reduce_sum float32[2,3,1] %7 axes=[2]
output %8
)";

TEST(RoundFactorsTest, BeneathViewsAndOnlyWhatIsNotExact) {
  EXPECT_EQ(Rounded("float32_matmul_precision high\n" + std::string(kMatmul)),
            R"(input 0 float32[2,4]
input 1 float16[3,4]
%0 = input float32[2,4] index=0
%1 = cmpne bool[2,4] %0 %0
%2 = const uint32 value=2143289344
%3 = reshape uint32[1,1] %2
%4 = expand uint32[2,4] %3
%5 = bitcast uint32[2,4] %0
%6 = const uint32 value=13
%7 = reshape uint32[1,1] %6
%8 = expand uint32[2,4] %7
%9 = shr uint32[2,4] %5 %8
%10 = const uint32 value=1
%11 = reshape uint32[1,1] %10
%12 = expand uint32[2,4] %11
%13 = and uint32[2,4] %9 %12
%14 = const uint32 value=4095
%15 = reshape uint32[1,1] %14
%16 = expand uint32[2,4] %15
%17 = add uint32[2,4] %13 %16
%18 = add uint32[2,4] %5 %17
%19 = where uint32[2,4] %1 %4 %18
%20 = const uint32 value=4294959104
%21 = reshape uint32[1,1] %20
%22 = expand uint32[2,4] %21
%23 = and uint32[2,4] %19 %22
%24 = bitcast float32[2,4] %23
%25 = reshape float32[2,1,4] %24
%26 = expand float32[2,3,4] %25
%27 = input float16[3,4] index=1
%28 = cast float32[3,4] %27
%29 = reshape float32[1,3,4] %28
%30 = expand float32[2,3,4] %29
%31 = mul float32[2,3,4] %26 %30
%32 = reduce_sum float32[2,3,1] %31 axes=[2]
output %32
)");
}

TEST(RoundFactorsTest, HighestStaysAsItIs) { EXPECT_EQ(Rounded(kMatmul), kMatmul); }

TEST(RoundFactorsTest, WhatIsRoundedIsNotRoundedAgain) {
  const std::string once = Rounded("float32_matmul_precision high\n" + std::string(kMatmul));
  EXPECT_EQ(Rounded("float32_matmul_precision high\n" + once), once);
}

class ContractionTest : public testing::Test {
 protected:
  ContractionTest() : context_(std::make_shared<ir::Context>()), b_(*context_) {
    graph_.context = context_;
    graph_.float32_matmul_precision = MatmulPrecision::kHigh;
  }

  const Node* Input(const ir::Shape& shape, DType dtype = DType::kFloat32) {
    graph_.inputs.push_back({dtype, shape});
    return b_.Input(static_cast<int64_t>(graph_.inputs.size()) - 1, dtype, shape);
  }

  // Returns the number of values that are rounded for these results.
  int CountRounded(std::vector<const Node*> outputs) {
    graph_.outputs = std::move(outputs);
    const Graph rounded = RoundFactors(graph_);
    EXPECT_EQ(Verify(rounded), absl::OkStatus());
    EXPECT_EQ(rounded.float32_matmul_precision, MatmulPrecision::kHighest);
    int count = 0;
    for (const Node* node : ir::TopologicalOrder(rounded.outputs)) {
      count += ir::IsRoundedToTf32(node) ? 1 : 0;
    }
    return count;
  }

  // x (m, k) times y (n, k), over (m, n, k).
  const Node* Products(const Node* x, const Node* y) {
    return b_.Mul(b_.Unsqueeze(x, -2), b_.Unsqueeze(y, -3));
  }

  std::shared_ptr<ir::Context> context_;
  Builder b_;
  Graph graph_;
};

TEST_F(ContractionTest, MatrixProducts) {
  const Node* x = Input({4, 8});
  const Node* y = Input({6, 8});
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, y), {2})}), 2);
  // A product of a value with itself.
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, x), {2})}), 1);
  // Batch dimensions that only one factor has: they are more rows.
  EXPECT_EQ(CountRounded({b_.Sum(Products(Input({3, 4, 8}), y), {3})}), 2);
  EXPECT_EQ(CountRounded({b_.Sum(Products(Input({3, 4, 8}), Input({3, 6, 8})), {3})}), 2);
}

TEST_F(ContractionTest, WhatOnlySumsProductsUp) {
  const Node* x = Input({4, 8});
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(x, x), {1})}), 0) << "a row with itself";
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(x, Input({4, 8})), {0, 1})}), 0) << "a dot product";
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(x, Input({8})), {1})}), 0) << "times a vector";
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, Input({1, 8})), {2})}), 0) << "times one column";
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, b_.Full(DType::kFloat32, {6, 8}, 0.1)), {2})}), 0)
      << "times a number";
  EXPECT_EQ(CountRounded({b_.Sum(Products(Input({4, 1}), Input({6, 8})), {2})}), 0)
      << "a factor that is the same all along the sum";
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, Input({6, 8})), {0, 2})}), 0)
      << "rows that do not stay";
  EXPECT_EQ(CountRounded({b_.Reduce(ir::Op::kReduceMax, Products(x, Input({6, 8})), {2})}), 0);
  EXPECT_EQ(CountRounded({b_.Sum(b_.Cast(Products(x, Input({6, 8})), DType::kFloat64), {2})}), 0);
  EXPECT_EQ(CountRounded({b_.Sum(
                Products(Input({4, 8}, DType::kFloat64), Input({6, 8}, DType::kFloat64)), {2})}),
            0);
  EXPECT_EQ(CountRounded({b_.Sum(Products(Input({4, 0}), Input({6, 0})), {2})}), 0);
}

TEST_F(ContractionTest, VarianceIsNone) {
  const Node* x = Input({4, 8});
  const Node* centered = b_.Sub(x, b_.Mul(b_.Sum(x, {1}, true), 0.125));
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(centered, centered), {1})}), 0);
}

TEST_F(ContractionTest, FactorsThatAreComputed) {
  const Node* x = b_.Mul(Input({4, 8}), b_.Unsqueeze(Input({8}), 0));
  EXPECT_EQ(CountRounded({b_.Sum(Products(x, Input({6, 8})), {2})}), 2);
  // Masked along the summed axis, in the shape of the products.
  const Node* mask =
      b_.Reshape(b_.Less(b_.Iota(DType::kInt64, {8}, 0), b_.ConstInt(DType::kInt64, 5)), {1, 1, 8});
  const Node* zero = b_.Const(DType::kFloat32, 0);
  const Node* left = b_.Where(mask, b_.Expand(b_.Unsqueeze(x, 1), {4, 6, 8}), zero);
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(left, b_.Unsqueeze(Input({6, 8}), 0)), {2})}), 2);
}

TEST_F(ContractionTest, ConvolutionsAndTheirGradients) {
  // (positions, channels, taps); the last two axes are summed.
  const Node* windows = b_.Permute(b_.Window(Input({3, 12}), 1, 5, 1, 1), {1, 0, 2});
  const Node* kernel = Input({7, 3, 5});
  const Node* upstream = Input({8, 7});
  const Node* products = b_.Mul(b_.Unsqueeze(windows, 1), b_.Unsqueeze(kernel, 0));
  EXPECT_EQ(CountRounded({b_.Sum(products, {2, 3})}), 2);
  const Node* spread = b_.Reshape(upstream, {8, 7, 1, 1});
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(spread, b_.Unsqueeze(kernel, 0)), {1})}), 2);
  EXPECT_EQ(CountRounded({b_.Sum(b_.Mul(spread, b_.Unsqueeze(windows, 1)), {0})}), 2);
  // Depthwise: each channel is one row times one column.
  const Node* apart = b_.Mul(windows, b_.Unsqueeze(Input({3, 5}), 0));
  EXPECT_EQ(CountRounded({b_.Sum(apart, {2})}), 0);
}

TEST_F(ContractionTest, ThroughGathersAndReshapes) {
  const Node* index = b_.Reshape(Input({4}, DType::kInt32), {4, 1});
  const Node* rows = b_.GatherElements(Input({100, 8}), index, 0);
  EXPECT_EQ(CountRounded({b_.Sum(Products(rows, Input({6, 8})), {2})}), 2);
  const Node* split = b_.Reshape(Input({32, 2}), {4, 8, 2});
  const Node* wide =
      b_.Sum(b_.Mul(b_.Unsqueeze(split, 1), b_.Reshape(Input({6, 8}), {1, 6, 8, 1})), {2});
  EXPECT_EQ(CountRounded({wide}), 2);
}

TEST_F(ContractionTest, ProductsThatAreAddedUpFirst) {
  const Node* x = Input({4, 8});
  const Node* both = b_.Add(Products(x, Input({6, 8})), Products(x, Input({6, 8})));
  EXPECT_EQ(CountRounded({b_.Sum(both, {2})}), 3);
  // The number of products is bounded: a larger sum is not rounded, and the time is not
  // exponential.
  const Node* doubled = both;
  for (int i = 0; i < 60; ++i) doubled = b_.Add(doubled, doubled);
  EXPECT_EQ(CountRounded({b_.Sum(doubled, {2})}), 0);
}

TEST_F(ContractionTest, OthersReadTheProductsAsTheyAre) {
  const Node* products = Products(Input({4, 8}), Input({6, 8}));
  graph_.outputs = {b_.Sum(products, {2}), products};
  EXPECT_EQ(RoundFactors(graph_).outputs[1], products);
}

TEST_F(ContractionTest, WhatIsExact) {
  const Node* y = Input({6, 8});
  const auto count = [&](const Node* x) { return CountRounded({b_.Sum(Products(x, y), {2})}) - 1; };
  for (const DType dtype : {DType::kBool, DType::kInt8, DType::kUInt8, DType::kFloat16,
                            DType::kBFloat16, DType::kFloat8E4M3}) {
    EXPECT_EQ(count(b_.Cast(Input({4, 8}, dtype), DType::kFloat32)), 0) << ir::Name(dtype);
  }
  for (const DType dtype : {DType::kInt16, DType::kInt32, DType::kFloat64}) {
    EXPECT_EQ(count(b_.Cast(Input({4, 8}, dtype), DType::kFloat32)), 1) << ir::Name(dtype);
  }
  const Node* exact = b_.Cast(Input({4, 8}, DType::kFloat16), DType::kFloat32);
  EXPECT_EQ(count(b_.Unary(ir::Op::kNeg, exact)), 0);
  EXPECT_EQ(count(b_.Binary(ir::Op::kMax, exact, b_.Const(DType::kFloat32, 0))), 0);
  const Node* condition = Input({4, 8}, DType::kBool);
  EXPECT_EQ(count(b_.Where(condition, exact, b_.Const(DType::kFloat32, 0.5))), 0);
  EXPECT_EQ(count(b_.Where(condition, exact, b_.Const(DType::kFloat32, 0.1))), 1);
  EXPECT_EQ(count(b_.Mul(exact, exact)), 1);
}

TEST_F(ContractionTest, RoundsToNearest) {
  const auto bits = [](uint32_t value) { return std::bit_cast<float>(value); };
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // A number, and the tf32 number nearest to it.
  const std::vector<std::pair<float, float>> cases = {
      {1.0f, 1.0f},
      {bits(0x3f800fff), 1.0f},
      {bits(0x3f801000), 1.0f},  // a tie: the last bit kept is even
      {bits(0x3f801001), bits(0x3f802000)},
      {bits(0x3f803000), bits(0x3f804000)},  // a tie: the last bit kept is odd
      {bits(0x3fffffff), 2.0f},
      {-bits(0x3f801001), -bits(0x3f802000)},
      {0.0f, 0.0f},
      {-0.0f, -0.0f},
      {bits(0x00001001), bits(0x00002000)},  // subnormal
      {std::numeric_limits<float>::max(), kInfinity},
      {kInfinity, kInfinity},
      {-kInfinity, -kInfinity},
  };
  const std::vector<uint32_t> nans = {0x7fffffff, 0xffffffff, 0x7f800001, 0xff800001, 0x7fc00000};
  const auto size = static_cast<int64_t>(cases.size() + nans.size());
  // x gets a second column of zeros and y is all ones, so that each sum is x's element.
  const Node* x = Input({size, 1});
  const Node* terms = b_.Pad(x, {0, 0, 0, 1});
  const Node* ones = b_.Full(DType::kFloat32, {2, 2}, 1);
  graph_.outputs = {b_.Sum(Products(terms, b_.Add(Input({2, 2}), ones)), {2})};
  const Graph rounded = RoundFactors(graph_);
  std::vector<ops::HostTensor> inputs = {ops::HostTensor::Zeros(DType::kFloat32, {size, 1}),
                                         ops::HostTensor::Zeros(DType::kFloat32, {2, 2})};
  auto* values = reinterpret_cast<uint32_t*>(inputs[0].bytes.data());
  for (size_t i = 0; i < cases.size(); ++i) values[i] = std::bit_cast<uint32_t>(cases[i].first);
  for (size_t i = 0; i < nans.size(); ++i) values[cases.size() + i] = nans[i];
  const auto results = ops::Evaluate(Roots(rounded), inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  for (int64_t i = 0; i < size; ++i) {
    const double result = (*results)[0].Number(2 * i);
    if (i >= static_cast<int64_t>(cases.size())) {
      EXPECT_TRUE(std::isnan(result)) << i;
    } else {
      EXPECT_EQ(result, cases[i].second) << cases[i].first;
    }
  }
}

}  // namespace
}  // namespace kiln::graph
