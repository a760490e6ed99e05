// Compares sums of millions of terms with their exact values. The errors of pairwise sums, such as
// NumPy's, are as large.
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_join.h"
#include "compiler/ops/attributes.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ir::Shape;
using ops::Builder;
using ops::HostTensor;

// Returns the results of one graph. `build` gets the builder and the inputs' nodes.
template <typename Build>
std::vector<HostTensor> ComputeSums(const std::vector<HostTensor>& inputs, const Build& build) {
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  Builder builder(*graph.context);
  std::vector<const Node*> nodes;
  for (const HostTensor& input : inputs) {
    nodes.push_back(builder.Input(static_cast<int64_t>(nodes.size()), input.dtype, input.shape));
    graph.inputs.push_back({input.dtype, input.shape});
  }
  graph.outputs = build(builder, nodes);
  auto results = RunCompiled(graph, inputs);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.ok() ? *std::move(results) : std::vector<HostTensor>();
}

// Positive values without a pattern, from 0 to 1.
HostTensor Spread(Shape shape) {
  HostTensor tensor = HostTensor::Zeros(DType::kFloat32, std::move(shape));
  uint64_t state = 1;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    tensor.SetFloat(i, static_cast<double>(state >> 40) / (1 << 24));
  }
  return tensor;
}

void ExpectClose(double actual, double expected, double tolerance, const std::string& what) {
  EXPECT_NEAR(actual / expected, 1, tolerance) << what;
}

// A fill takes no memory, and has no loads that lanes could share.
TEST(LongSums, OfEqualValues) {
  for (const int64_t terms : {int64_t{1} << 20, int64_t{1} << 26, int64_t{100'000'000}}) {
    const auto sums = ComputeSums({}, [&](Builder& b, const std::vector<const Node*>&) {
      return std::vector<const Node*>{
          b.Sum(b.Full(DType::kFloat32, {terms}, 0.1), {0}),
          b.Sum(b.Full(DType::kFloat32, {terms}, 1), {0}),
      };
    });
    ASSERT_EQ(sums.size(), 2);
    const auto count = static_cast<double>(terms);
    ExpectClose(sums[0].Float(0), count * static_cast<double>(0.1F), 4e-6, "of 0.1");
    EXPECT_EQ(sums[1].Float(0), count);
  }
}

// A single chain would end at 2^24: adding 1 changes nothing.
TEST(LongSums, OfMoreOnesThanAFloatCounts) {
  const Shape shape = {int64_t{1} << 25, 64};
  const auto sums = ComputeSums({}, [&](Builder& b, const std::vector<const Node*>&) {
    return std::vector<const Node*>{b.Sum(b.Full(DType::kFloat32, shape, 1), {0})};
  });
  ASSERT_EQ(sums.size(), 1);
  for (int64_t i = 0; i < shape[1]; ++i) EXPECT_EQ(sums[0].Float(i), int64_t{1} << 25);
}

TEST(LongSums, AlongEachAxis) {
  for (const Shape& shape : std::vector<Shape>{
           {int64_t{1} << 22}, {3, 1'000'003}, {1'000'003, 3}, {int64_t{1} << 17, 24}}) {
    const HostTensor x = Spread(shape);
    const auto rank = static_cast<int64_t>(shape.size());
    std::vector<std::vector<int64_t>> axes = {{0}};
    if (rank == 2) axes = {{0}, {1}, {0, 1}};
    const auto sums = ComputeSums({x}, [&](Builder& b, const std::vector<const Node*>& inputs) {
      std::vector<const Node*> outputs;
      for (const auto& reduced : axes) outputs.push_back(b.Sum(inputs[0], reduced));
      return outputs;
    });
    ASSERT_EQ(sums.size(), axes.size());
    const int64_t columns = rank == 2 ? shape[1] : 1;
    for (size_t i = 0; i < axes.size(); ++i) {
      std::vector<double> expected(sums[i].size());
      for (int64_t j = 0; j < x.size(); ++j) {
        const int64_t result = expected.size() == 1 ? 0
                               : axes[i][0] == 0    ? j % columns
                                                    : j / columns;
        expected[result] += x.Float(j);
      }
      for (size_t j = 0; j < expected.size(); ++j) {
        ExpectClose(sums[i].Float(static_cast<int64_t>(j)), expected[j], 1e-6,
                    absl::StrJoin(shape, " by ") + " along axis " + std::to_string(axes[i][0]));
      }
    }
  }
}

// Contractions in register tiles, of few rows, and of one, each along and across memory.
TEST(LongSums, OfProducts) {
  struct Sizes {
    int64_t rows, columns, terms;
  };
  for (const auto& [rows, columns, terms] : {Sizes{1, 1, int64_t{1} << 21}, Sizes{1, 40, 50'021},
                                             Sizes{3, 7, 100'003}, Sizes{40, 48, 20'011}}) {
    HostTensor a = HostTensor::Zeros(DType::kFloat32, {rows, terms});
    HostTensor b = HostTensor::Zeros(DType::kFloat32, {terms, columns});
    for (HostTensor* factor : {&a, &b}) {
      for (int64_t i = 0; i < factor->size(); ++i) factor->SetFloat(i, 0.1);
    }
    const double tenth = a.Float(0);
    const auto product = static_cast<double>(static_cast<float>(tenth * tenth));
    const auto results =
        ComputeSums({a, b}, [&](Builder& builder, const std::vector<const Node*>& inputs) {
          const ops::OpDef& matmul = *ops::FindOp("matmul");
          // All values are equal, so they may be in any order.
          const Node* turned = builder.Transpose(builder.Reshape(inputs[0], {terms, rows}), 0, 1);
          std::vector<const Node*> products;
          for (const Node* factor : {inputs[0], turned}) {
            const auto product =
                ops::BuildOp(builder, matmul, {factor, inputs[1]}, {}, DType::kInvalid);
            EXPECT_TRUE(product.ok()) << product.status();
            if (product.ok()) products.push_back(*product);
          }
          return products;
        });
    ASSERT_EQ(results.size(), 2);
    for (const HostTensor& result : results) {
      for (int64_t i = 0; i < result.size(); ++i) {
        ASSERT_NEAR(result.Float(i) / (static_cast<double>(terms) * product), 1, 2e-5)
            << rows << " by " << columns << " of " << terms;
      }
    }
  }
}

// Double precision and short floats, which are added up in float32.
TEST(LongSums, OfOtherDTypes) {
  const int64_t terms = int64_t{1} << 22;
  const auto sums = ComputeSums({}, [&](Builder& b, const std::vector<const Node*>&) {
    std::vector<const Node*> outputs;
    for (const DType dtype : {DType::kFloat64, DType::kBFloat16, DType::kFloat16}) {
      outputs.push_back(b.Sum(b.Full(dtype, {terms}, 1.0 / 64), {0}));
    }
    outputs.push_back(b.Sum(b.Full(DType::kFloat64, {terms}, 0.1), {0}));
    return outputs;
  });
  ASSERT_EQ(sums.size(), 4);
  EXPECT_EQ(sums[0].Float(0), 65536);
  EXPECT_EQ(sums[1].Float(0), 65536);
  EXPECT_TRUE(std::isinf(sums[2].Float(0)));  // float16 ends at 65504
  ExpectClose(sums[3].Float(0), 0.1 * static_cast<double>(terms), 1e-14, "in float64");
}

}  // namespace
}  // namespace kiln::numerics
