// Compares one compiled program for all values of a variable with the reference interpreter on the
// graphs made for each of them.
#include <algorithm>
#include <string>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/variables/variable_graph.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/packed.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/random/variable_graph.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ops::HostTensor;
using Make = std::function<void(Maker& maker, int64_t n)>;

HostTensor ValueOf(const graph::Input& input, uint64_t seed) {
  HostTensor value = HostTensor::Zeros(input.dtype, input.shape);
  for (int64_t i = 0; i < value.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    value.SetFloat(i, static_cast<double>(seed >> 40) / (1 << 22) - 2);
  }
  return value;
}

HostTensor FrontOf(const HostTensor& packed, const ir::Shape& shape) {
  HostTensor value = HostTensor::Zeros(packed.dtype, shape);
  std::copy_n(packed.bytes.begin(), value.bytes.size(), value.bytes.begin());
  return value;
}

void ExpectCompiledRight(const Make& make, int64_t size_max, const std::vector<int64_t>& values,
                         const std::string& name) {
  const auto build = [&](absl::Span<const int64_t> n,
                         ops::FormSizes* sizes) -> absl::StatusOr<graph::Graph> {
    Maker maker(DType::kFloat32, sizes);
    make(maker, n[0]);
    return maker.graph;
  };
  const auto one = variables::VariableGraph::Make({{"n", 1, size_max}}, build);
  ASSERT_TRUE(one.ok()) << name << ": " << one.status();
  for (const int64_t n : values) {
    ops::FormSizes sizes = one->form_sizes();
    if (!one->IsRightAt(*build({n}, &sizes), {n})) continue;
    const auto special = autodiff::Differentiate(*build({n}, nullptr));
    ASSERT_TRUE(special.ok()) << special.status();
    std::vector<HostTensor> inputs;
    std::vector<HostTensor> packed;
    for (size_t i = 0; i < special->inputs.size(); ++i) {
      inputs.push_back(ValueOf(special->inputs[i], i + 1));
      packed.push_back(Packed(inputs.back(), one->capacity().inputs[i]));
    }
    packed.push_back(HostTensor::Of(DType::kInt64, {1}, {static_cast<double>(n)}));
    const auto expected = ops::Evaluate(special->outputs, inputs);
    const auto actual = RunCompiled(one->capacity(), packed);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(actual.ok()) << name << ": " << actual.status();
    for (size_t i = 0; i < expected->size(); ++i) {
      const HostTensor front = FrontOf((*actual)[i], (*expected)[i].shape);
      EXPECT_EQ(Difference(front, (*expected)[i], 1e-3, 1e-3), "")
          << name << ", output " << i << " at n = " << n << "\n"
          << graph::Print(one->capacity());
    }
  }
}

TEST(OneProgram, RandomGraphsAtEveryLength) {
  for (uint64_t seed = 1000; seed < 1020 && !HasFailure(); ++seed) {
    const Make make = [seed](Maker& m, int64_t n) { MakeVariableGraph(m, seed, n, 6); };
    ExpectCompiledRight(make, 12, {3, 10}, "seed " + std::to_string(seed));
  }
}

// Long enough for tiles, packed panels and partially used lanes.
TEST(OneProgram, ContractionsOverAVariableDimension) {
  const Make make = [](Maker& m, int64_t n) {
    const ir::Node* a = m.Input({33, n});
    const ir::Node* b = m.Input({n, 70});
    const ir::Node* product = m.Make("matmul", {a, b});
    const ir::Node* attended = m.Make(
        "scaled_dot_product_attention",
        {m.Input({2, 1, 32}),
         m.Make("shrink", {m.Input({2, 90, 32})}, {{"bounds", Maker::List({0, 2, 0, n, 0, 32})}}),
         m.Input({2, n, 32})});
    m.graph.outputs = {product, m.Make("matmul", {b, m.Input({70, 40})}), attended,
                       m.Make("softmax", {a}), m.Make("mean", {b})};
  };
  ExpectCompiledRight(make, 90, {1, 7, 64, 89, 90}, "contractions");
}

// Padded to the largest length, and of sizes that are products and quotients.
TEST(OneProgram, FormsAndSizesThatDependOnAVariable) {
  const Make make = [](Maker& m, int64_t n) {
    const ir::Node* x = m.Input({n, 3});
    const ir::Node* square = m.Input({n, n});
    const ir::Node* w = m.Input({4, 3, 3});
    const ops::Attributes strided = {{"stride", Maker::List({2})}, {"padding", Maker::List({1})}};
    const ir::Node* y = m.Make("conv1d", {m.Input({2, 3, n + 3}), w}, strided);
    const ir::Node* loss = m.Make("sum", {m.Make("mul", {y, y})});
    m.graph.outputs = {m.Make("sort", {x}, {{"axis", int64_t{0}}}),
                       m.Make("argsort", {square}),
                       m.Make("topk", {square}, {{"k", int64_t{1}}}),
                       m.Make("cumulative_sum", {x}, {{"axis", int64_t{0}}}),
                       m.b.Diagonal(square),
                       m.Make("mean", {square}),
                       m.b.Reshape(m.Make("sin", {square}), {n * n}),
                       y,
                       m.Make("gradient", {loss, w})};
  };
  ExpectCompiledRight(make, 70, {2, 31, 64, 69, 70}, "forms");
}

}  // namespace
}  // namespace kiln::numerics
