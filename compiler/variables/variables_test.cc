// Compares a graph at capacity with the graph built for each value, both interpreted, at every
// value within small bounds.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/round_factors.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/tf32.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/build_op.h"
#include "compiler/ops/testing/evaluate.h"
#include "compiler/variables/capacity.h"
#include "compiler/variables/generalize.h"
#include "compiler/variables/is_right_at.h"
#include "compiler/variables/variable_graph.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/packed.h"
#include "tests/numerics/random/variable_graph.h"

namespace kiln::variables {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using numerics::Maker;
using numerics::Packed;
using ops::Attributes;
using ops::Builder;
using ops::HostTensor;
using Values = absl::Span<const int64_t>;

// Builds a test's graph for given values of the variables.
using Make = std::function<void(Maker& maker, Values n)>;

SizedBuildFunction Sized(const Make& make) {
  return [make](Values values, ops::FormSizes* sizes) -> absl::StatusOr<graph::Graph> {
    Maker maker(DType::kFloat64, sizes);
    make(maker, values);
    return autodiff::Differentiate(maker.graph);
  };
}

BuildFunction Building(const Make& make) {
  return [build = Sized(make)](Values values) { return build(values, nullptr); };
}

HostTensor ValueOf(const graph::Input& input, uint64_t seed) {
  HostTensor tensor = HostTensor::Zeros(input.dtype, input.shape);
  for (int64_t i = 0; i < tensor.size(); ++i) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    const double unit = static_cast<double>(seed >> 40) / (1 << 24);
    if (ir::IsFloat(input.dtype)) {
      tensor.SetFloat(i, 4 * unit - 2);
    } else {
      tensor.SetInt(i, static_cast<int64_t>(unit * 7) - 1);
    }
  }
  return tensor;
}

void ExpectSame(const HostTensor& expected, const HostTensor& packed, const std::string& where) {
  ASSERT_EQ(packed.dtype, expected.dtype) << where;
  ASSERT_GE(packed.size(), expected.size()) << where;
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double a = expected.Number(i);
    const double b = packed.Number(i);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    ASSERT_NEAR(a, b, 1e-12 * (1 + std::abs(a))) << where << " element " << i;
  }
}

void ExpectEqualAt(const graph::Graph& special, const graph::Graph& capacity, Values values,
                   const std::string& where) {
  std::vector<HostTensor> inputs;
  std::vector<HostTensor> packed;
  for (size_t i = 0; i < special.inputs.size(); ++i) {
    inputs.push_back(ValueOf(special.inputs[i], i + 1));
    packed.push_back(Packed(inputs.back(), capacity.inputs[i]));
  }
  HostTensor numbers = HostTensor::Zeros(DType::kInt64, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i) numbers.SetInt(static_cast<int64_t>(i), values[i]);
  packed.push_back(numbers);
  const auto expected = ops::Evaluate(graph::Roots(special), inputs);
  const auto actual = ops::Evaluate(graph::Roots(capacity), packed);
  ASSERT_TRUE(expected.ok()) << where << expected.status();
  ASSERT_TRUE(actual.ok()) << where << actual.status();
  for (size_t i = 0; i < expected->size(); ++i) ExpectSame((*expected)[i], (*actual)[i], where);
}

// Calls `visit` with all values within the bounds.
void ForAll(const std::vector<graph::Variable>& variables, std::vector<int64_t> chosen,
            const std::function<void(Values)>& visit) {
  if (chosen.size() == variables.size()) return visit(chosen);
  const graph::Variable& next = variables[chosen.size()];
  for (int64_t value = next.min; value <= next.max; ++value) {
    std::vector<int64_t> longer = chosen;
    longer.push_back(value);
    ForAll(variables, longer, visit);
  }
}

// Returns the number of values that share the one program; the others would get their own programs.
int ExpectOneGraph(const std::vector<graph::Variable>& variables, const Make& make,
                   const std::string& name) {
  const auto one = VariableGraph::Make(variables, Sized(make));
  EXPECT_TRUE(one.ok()) << name << ": " << one.status();
  if (!one.ok()) return 0;
  int covered = 0;
  ForAll(variables, {}, [&](Values values) {
    std::string where = name + " at";
    for (const int64_t value : values) where += " " + std::to_string(value);
    ops::FormSizes sizes = one->form_sizes();
    const auto sized = Sized(make)(values, &sizes);
    ASSERT_TRUE(sized.ok()) << where << ": " << sized.status();
    if (!one->IsRightAt(*sized, values)) return;
    ++covered;
    // Also compares the forms for these values alone with those for all.
    const auto special = Building(make)(values);
    ASSERT_TRUE(special.ok()) << where << ": " << special.status();
    ExpectEqualAt(*special, one->capacity(), values, where);
  });
  return covered;
}

struct Case {
  std::string name;
  Make make;
};

// One variable n in [1, 7].
const std::vector<Case>& Cases() {
  static const auto& cases = *new std::vector<Case>{
      {"elementwise",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], 3});
         m.graph.outputs = {m.Make("add", {x, m.Make("exp", {m.Input({3})})})};
       }},
      {"reduce_leading",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], 3});
         m.graph.outputs = {m.Make("sum", {x}, {{"axes", m.List({0})}}),
                            m.Make("max", {x}, {{"axes", m.List({0})}}),
                            m.Make("prod", {x}),
                            m.Make("min", {x}),
                            m.Make("mean", {x}, {{"axes", m.List({0})}}),
                            m.Make("var", {x}, {{"correction", 0.0}})};
       }},
      {"reduce_inner",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0], 3});
         m.graph.outputs = {m.Make("sum", {x}, {{"axes", m.List({1})}}),
                            m.Make("max", {x}, {{"axes", m.List({2, 1})}}),
                            m.Make("sum", {x}, {{"axes", m.List({0})}}),
                            m.Make("logsumexp", {x}, {{"axes", m.List({1})}})};
       }},
      {"softmax",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0]});
         m.graph.outputs = {m.Make("softmax", {x}),
                            m.Make("log_softmax", {x}, {{"axis", int64_t{0}}}),
                            m.Make("argmax", {x}, {{"axes", m.List({1})}})};
       }},
      {"matmul",
       [](Maker& m, Values n) {
         const Node* a = m.Input({2, n[0]});
         const Node* b = m.Input({n[0], 3});
         m.graph.outputs = {m.Make("matmul", {a, b}), m.Make("matmul", {b, m.Input({3, 2})}),
                            m.Make("matmul", {m.Input({4, 2}), a})};
       }},
      {"linear_gradient",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0], 3});
         const Node* w = m.Input({4, 3});
         const Node* bias = m.Input({4});
         const Node* y = m.Make("relu", {m.Make("linear", {x, w, bias})});
         const Node* loss = m.Make("mean", {m.Make("mul", {y, y})});
         m.graph.outputs = {loss};
         for (const Node* of : {x, w, bias})
           m.graph.outputs.push_back(m.Make("gradient", {loss, of}));
       }},
      {"cross_entropy_gradient",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], 5});
         const Node* labels = m.Input({n[0]}, DType::kInt64);
         const Node* hot = m.Make("one_hot", {labels}, {{"classes", int64_t{5}}});
         const Node* loss =
             m.Make("mean", {m.Make("sum",
                                    {m.Make("mul", {m.Make("log_softmax", {x}),
                                                    m.Make("cast", {hot}, {}, DType::kFloat64)})},
                                    {{"axes", m.List({1})}})});
         m.graph.outputs = {loss, m.Make("gradient", {loss, x})};
       }},
      {"movement",
       [](Maker& m, Values n) {
         const Node* x = m.Input({3, n[0], 2});
         m.graph.outputs = {
             m.Make("flip", {x}), m.Make("permute", {x}, {{"axes", m.List({1, 2, 0})}}),
             m.Make("pad", {x}, {{"padding", m.List({0, 0, 1, 2, 0, 0})}}),
             m.Make("pad", {m.Input({2})}, {{"padding", m.List({n[0], 1})}}),
             m.Make("pad", {x}, {{"padding", m.List({0, 0, n[0], 9 - n[0], 0, 0})}})};
       }},
      {"shrink",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, 7});
         const Node* y = m.Input({n[0] + 2});
         m.graph.outputs = {m.Make("shrink", {x}, {{"bounds", m.List({0, 2, 0, n[0]})}}),
                            m.Make("shrink", {x}, {{"bounds", m.List({0, 2, n[0] - 1, n[0]})}}),
                            m.Make("shrink", {x}, {{"bounds", m.List({0, 1, n[0], 7})}}),
                            m.Make("shrink", {y}, {{"bounds", m.List({1, n[0] + 1})}})};
       }},
      {"reshape",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0], 6});
         const Node* exponential = m.Make("exp", {x});
         m.graph.outputs = {
             m.b.Reshape(exponential, {2 * n[0], 6}), m.b.Reshape(exponential, {2, n[0] * 2, 3}),
             m.b.Reshape(exponential, {12 * n[0]}), m.b.Reshape(exponential, {n[0], 2, 1, 6}),
             m.b.Reshape(exponential, {2 * n[0], 2, 3})};
       }},
      {"concat",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0]});
         const Node* y = m.Input({2, 3});
         m.graph.outputs = {m.Make("concat", {x, y, x}, {{"axis", int64_t{1}}})};
       }},
      {"gather",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], 2});
         const Node* table = m.Input({5, 2});
         const Node* index = m.Input({n[0]}, DType::kInt32);
         const Node* y = m.Make("gather", {table, index});
         const Node* loss = m.Make("sum", {m.Make("mul", {y, x})});
         m.graph.outputs = {y, m.Make("gather", {x, m.Input({4}, DType::kInt64)}),
                            m.Make("gradient", {loss, table}), m.Make("gradient", {loss, x})};
       }},
      {"scatter_add",
       [](Maker& m, Values n) {
         m.graph.outputs = {m.Make("scatter_add", {m.Input({4, 3}), m.Input({n[0]}, DType::kInt64),
                                                   m.Input({n[0], 3})}),
                            m.Make("scatter_add", {m.Input({n[0], 3}), m.Input({2}, DType::kUInt8),
                                                   m.Input({2, 3})})};
       }},
      {"windows",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0] + 3});
         const Node* y = m.b.Window(x, 1, 3, 1, 1);
         const Node* loss = m.Make("sum", {m.Make("mul", {y, y})});
         m.graph.outputs = {y, m.Make("gradient", {loss, x})};
       }},
      {"conv2d",
       [](Maker& m, Values n) {
         const Node* x = m.Input({1, 2, n[0] + 2, 4});
         const Node* w = m.Input({3, 2, 3, 3});
         const Node* y = m.Make("conv2d", {x, w}, {{"padding", m.List({1, 1})}});
         const Node* loss = m.Make("sum", {m.Make("mul", {y, y})});
         m.graph.outputs = {y, m.Make("gradient", {loss, x}), m.Make("gradient", {loss, w})};
       }},
      {"attention",
       [](Maker& m, Values n) {
         const Node* q = m.Input({2, 1, 4});
         const Node* cache = m.Input({2, 7, 4});
         const Node* keys = m.Make("shrink", {cache}, {{"bounds", m.List({0, 2, 0, n[0], 0, 4})}});
         const Node* y = m.Make("scaled_dot_product_attention", {q, keys, m.Input({2, n[0], 4})});
         m.graph.outputs = {y, m.Make("gradient", {m.Make("sum", {y}), cache})};
       }},
      {"causal_attention",
       [](Maker& m, Values n) {
         const Node* q = m.Input({2, n[0], 4});
         const Node* y = m.Make("scaled_dot_product_attention", {q, m.Input({2, n[0], 4}), q},
                                {{"causal", true}});
         m.graph.outputs = {y, m.Make("gradient", {m.Make("sum", {m.Make("mul", {y, y})}), q})};
       }},
      {"iota",
       [](Maker& m, Values n) {
         m.graph.outputs = {m.Make("iota", {}, {{"shape", m.List({3, n[0]})}, {"axis", int64_t{1}}},
                                   DType::kInt32),
                            m.Make("const", {}, {{"value", 2 * n[0] - 1}}, DType::kInt64)};
       }},
      {"random",
       [](Maker& m, Values n) {
         const Node* key = m.Input({2}, DType::kUInt32);
         m.graph.outputs = {
             m.Make("random_uniform", {key}, {{"shape", m.List({3, n[0]})}}, DType::kFloat32)};
       }},
      {"update",
       [](Maker& m, Values n) {
         const Node* cache = m.Input({2, 7, 3});
         const Node* row = m.Make("pad", {m.Input({2, 1, 3})},
                                  {{"padding", m.List({0, 0, n[0] - 1, 7 - n[0], 0, 0})}});
         m.graph.updates = {{0, m.Make("add", {cache, row})}};
         const Node* state = m.Input({n[0], 2});
         m.graph.updates.push_back({2, m.Make("neg", {state})});
       }},
  };
  return cases;
}

class OneGraphTest : public testing::TestWithParam<Case> {};

TEST_P(OneGraphTest, EqualsTheGraphOfEveryValue) {
  // At a size of 1 the composites may have another form, which gets its own program.
  EXPECT_GE(ExpectOneGraph({{"n", 1, 7}}, GetParam().make, GetParam().name), 6);
}

INSTANTIATE_TEST_SUITE_P(Ops, OneGraphTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

TEST(VariablesTest, RandomGraphs) {
  int covered = 0;
  constexpr int kGraphs = 200;
  for (int seed = 0; seed < kGraphs && !HasFailure(); ++seed) {
    const Make make = [seed](Maker& m, Values n) { numerics::MakeVariableGraph(m, seed, n[0], 8); };
    covered += ExpectOneGraph({{"n", 1, 12}}, make, "seed " + std::to_string(seed));
  }
  // At n = 1 many have another form.
  EXPECT_GE(covered, kGraphs * 9);
}

// Expansions whose form depends on a size have one form for all sizes within the bounds.
const std::vector<Case>& FormCases() {
  static const auto& cases = *new std::vector<Case>{
      {"sort",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], 2});
         // With NaN, and with many that are equal.
         const Node* odd = m.Make("log", {m.Input({2, n[0]})});
         const Node* equal = m.Input({n[0]}, DType::kInt8);
         const Node* sorted = m.Make("sort", {x}, {{"axis", int64_t{0}}});
         const Node* loss = m.Make("sum", {m.Make("exp", {sorted})});
         m.graph.outputs = {sorted,
                            m.Make("gradient", {loss, x}),
                            m.Make("sort", {odd}, {{"descending", true}}),
                            m.Make("argsort", {odd}),
                            m.Make("argsort", {equal}),
                            m.Make("argsort", {equal}, {{"descending", true}}),
                            m.Make("sort", {m.Input({n[0]}, DType::kInt64)})};
       }},
      {"many_columns",  // their number selects the form, too
       [](Maker& m, Values n) {
         m.graph.outputs = {m.Make("topk", {m.Input({8, n[0]})}, {{"k", int64_t{1}}}),
                            m.Make("sort", {m.Input({n[0], 5})})};
       }},
      {"cumulative",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0], 2});
         const Node* y = m.Input({n[0]});
         const ops::Attributes axis = {{"axis", int64_t{1}}};
         const ops::Attributes first = {{"axis", int64_t{0}}};
         const Node* sums = m.Make("cumulative_sum", {x}, axis);
         const Node* products = m.Make("cumulative_prod", {y}, first);
         const Node* sums_of_exp = m.Make("cumulative_logsumexp", {y}, first);
         const Node* loss =
             m.Make("add", {m.Make("sum", {m.Make("mul", {sums, sums})}),
                            m.Make("sum", {m.Make("add", {products, sums_of_exp})})});
         m.graph.outputs = {sums,
                            products,
                            sums_of_exp,
                            m.Make("cumulative_max", {y}, first),
                            m.Make("cumulative_min", {x}, axis),
                            m.Make("cumulative_sum", {m.Input({n[0]}, DType::kInt64)}, first),
                            m.Make("gradient", {loss, x}),
                            m.Make("gradient", {loss, y})};
       }},
      {"resized",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0] + 1});
         // Where both sizes are equal, x is the result, which is another form.
         const Node* fixed = m.Input({2, 16});
         const ops::Attributes longer = {{"size", m.List({2 * n[0] + 2})}};
         const auto wanted = [&](const char* mode, int64_t size) {
           return ops::Attributes{{"size", m.List({size})}, {"mode", std::string(mode)}};
         };
         const Node* mean = m.Make("adaptive_avg_pool", {x}, {{"size", m.List({3})}});
         const Node* loss = m.Make("sum", {m.Make("mul", {mean, mean})});
         m.graph.outputs = {m.Make("interpolate", {x}, longer),
                            m.Make("interpolate", {x}, wanted("linear", 2 * n[0] + 2)),
                            m.Make("interpolate", {x}, wanted("nearest", 90)),
                            m.Make("interpolate", {x}, wanted("linear", 200)),
                            m.Make("interpolate", {fixed}, wanted("nearest", n[0] + 16)),
                            m.Make("interpolate", {fixed}, wanted("cubic", n[0] + 20)),
                            mean,
                            m.Make("adaptive_max_pool", {x}, {{"size", m.List({3})}}),
                            m.Make("adaptive_max_pool", {x}, {{"size", m.List({1})}}),
                            m.Make("gradient", {loss, x})};
       }},
      {"searchsorted",
       [](Maker& m, Values n) {
         const Node* sorted = m.Make("sort", {m.Input({n[0]})});
         m.graph.outputs = {m.Make("searchsorted", {m.Input({7}), sorted}),
                            m.Make("searchsorted", {m.Input({n[0]}), sorted}, {{"right", true}})};
       }},
  };
  return cases;
}

// Sizes that are no affine functions of the variables.
const std::vector<Case>& DerivedCases() {
  static const auto& cases = *new std::vector<Case>{
      {"square",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0], n[0]});
         const Node* flat = m.b.Reshape(m.Make("exp", {x}), {n[0] * n[0]});
         const Node* loss = m.Make("mean", {m.Make("mul", {x, x})});
         m.graph.outputs = {flat, loss, m.Make("gradient", {loss, x}), m.b.Diagonal(x),
                            m.b.Reshape(flat, {n[0], n[0]})};
       }},
      {"square_among_others",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, n[0], n[0] + 1, 3});
         m.graph.outputs = {m.b.Reshape(m.Make("neg", {x}), {2, n[0] * (n[0] + 1), 3}),
                            m.b.Reshape(x, {3, n[0], 2, n[0] + 1}),
                            m.Make("sort", {x}, {{"axis", int64_t{1}}})};
       }},
      {"every_second",
       [](Maker& m, Values n) {
         const Node* x = m.Input({2, 3, n[0] + 3});
         const Node* w = m.Input({4, 3, 3});
         const ops::Attributes strided = {{"stride", m.List({2})}, {"padding", m.List({1})}};
         const Node* y = m.Make("conv1d", {x, w}, strided);
         const Node* z = m.Make("conv1d", {m.Make("tanh", {y}), m.Input({2, 4, 3})}, strided);
         const Node* loss = m.Make("sum", {m.Make("mul", {z, z})});
         m.graph.outputs = {y, z, m.Make("gradient", {loss, x}), m.Make("gradient", {loss, w})};
       }},
      {"every_third",
       [](Maker& m, Values n) {
         const Node* x = m.Input({n[0] + 5, 2});
         const Node* windows = m.b.Window(x, 0, 4, 3, 1);
         m.graph.outputs = {m.Make("max", {windows}, {{"axes", m.List({-1})}}),
                            m.Make("mean", {windows})};
       }},
  };
  return cases;
}

class DerivedTest : public testing::TestWithParam<Case> {};

TEST_P(DerivedTest, EqualsTheGraphOfEveryValue) {
  EXPECT_GE(ExpectOneGraph({{"n", 1, 24}}, GetParam().make, GetParam().name), 23);
}

INSTANTIATE_TEST_SUITE_P(Sizes, DerivedTest, testing::ValuesIn(DerivedCases()),
                         [](const auto& info) { return info.param.name; });

TEST(VariablesTest, ProductsOfTwoVariables) {
  const Make make = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0], 2, n[1]});
    const Node* flat = m.b.Reshape(m.Make("exp", {x}), {n[0] * 2 * n[1]});
    const Node* loss = m.Make("mean", {m.Make("mul", {x, x})});
    m.graph.outputs = {flat,
                       m.b.Reshape(flat, {n[1], n[0] * 2}),
                       loss,
                       m.Make("gradient", {loss, x}),
                       m.Make("sort", {x}),
                       m.Make("cumulative_sum", {x}, {{"axis", int64_t{1}}})};
  };
  EXPECT_GE(ExpectOneGraph({{"rows", 2, 9}, {"columns", 2, 8}}, make, "two"), 8 * 7);
}

class OneFormTest : public testing::TestWithParam<Case> {};

TEST_P(OneFormTest, EqualsTheGraphOfEveryValue) {
  EXPECT_GE(ExpectOneGraph({{"n", 1, 70}}, GetParam().make, GetParam().name), 69);
}

INSTANTIATE_TEST_SUITE_P(Ops, OneFormTest, testing::ValuesIn(FormCases()),
                         [](const auto& info) { return info.param.name; });

// Selection by blocks pays only for long dimensions.
TEST(VariablesTest, TheFirstOfManyElements) {
  const Make make = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0]}, DType::kInt32);
    m.graph.outputs = {m.Make("topk_indices", {x}, {{"k", int64_t{3}}, {"largest", false}})};
  };
  const std::vector<graph::Variable> bounds = {{"n", 3, 1 << 17}};
  const auto one = VariableGraph::Make(bounds, Sized(make));
  ASSERT_TRUE(one.ok()) << one.status();
  for (const int64_t n : {3, 4, 33, 1000, 70000, 1 << 17}) {
    ops::FormSizes sizes = one->form_sizes();
    EXPECT_TRUE(one->IsRightAt(*Sized(make)({n}, &sizes), {n})) << n;
    ExpectEqualAt(*Building(make)({n}), one->capacity(), {n}, "at " + std::to_string(n));
  }
}

TEST(VariablesTest, FormSizes) {
  ops::FormSizes sizes;
  const auto ask = [&sizes](int node, std::initializer_list<int64_t> wanted) {
    sizes.BeginNode(node);
    std::vector<std::pair<int64_t, int64_t>> ranges;
    for (const int64_t size : wanted) {
      const ops::SizeRange range = sizes.Next(size);
      ranges.emplace_back(range.least, range.most);
    }
    return ranges;
  };
  using Ranges = std::vector<std::pair<int64_t, int64_t>>;
  EXPECT_TRUE(sizes.empty());
  EXPECT_EQ(ask(0, {9, 5}), (Ranges{{9, 9}, {5, 5}}));
  EXPECT_EQ(ask(1, {3}), (Ranges{{3, 3}}));
  EXPECT_EQ(ask(0, {2, 5}), (Ranges{{2, 9}, {5, 5}}));
  sizes.Freeze();
  EXPECT_EQ(ask(1, {3}), (Ranges{{3, 3}}));
  EXPECT_EQ(ask(0, {4, 5}), (Ranges{{2, 9}, {5, 5}}));
  // Outside, and of nodes and numbers that were never asked for.
  EXPECT_EQ(ask(0, {10, 4, 7}), (Ranges{{10, 10}, {4, 4}, {7, 7}}));
  EXPECT_EQ(ask(2, {1}), (Ranges{{1, 1}}));
}

TEST(VariablesTest, TwoVariables) {
  const Make make = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0], n[1]});
    const Node* y = m.Input({n[1], 3});
    const Node* z = m.Make("matmul", {m.Make("softmax", {x}), y});
    const Node* loss = m.Make("sum", {m.Make("mul", {z, z})});
    m.graph.outputs = {
        z, m.Make("gradient", {loss, x}), m.Make("gradient", {loss, y}),
        m.Make("concat", {y, m.Make("shrink", {m.Input({n[0] + n[1], 3})},
                                    {{"bounds", m.List({n[1], n[0] + n[1], 0, 3})}})})};
  };
  EXPECT_GE(ExpectOneGraph({{"rows", 2, 6}, {"columns", 2, 5}}, make, "two"), 20);
}

TEST(VariablesTest, WhatIsNoFormulaIsAnError) {
  const Make cube = [](Maker& m, Values n) {
    const int64_t size = n[0] * n[0] * n[0];
    m.graph.outputs = {m.Make("iota", {}, {{"shape", m.List({size})}}, DType::kInt32)};
  };
  EXPECT_EQ(Generalize({{"n", 1, 20}}, Building(cube)).status().code(),
            absl::StatusCode::kUnimplemented);
  const Make two_forms = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0]});
    m.graph.outputs = {n[0] % 2 == 0 ? m.Make("exp", {x}) : m.Make("sin", {x})};
  };
  EXPECT_EQ(Generalize({{"n", 1, 20}}, Building(two_forms)).status().code(),
            absl::StatusCode::kUnimplemented);
}

// Also for an input that nothing reads, which has no node.
TEST(VariablesTest, SizesThatNoNumberHoldsAreAnError) {
  const Make make = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0], 2});
    m.Input({n[0], n[1], n[2]});
    m.graph.outputs = {m.Make("exp", {x})};
  };
  const int64_t size_max = int64_t{1} << 19;
  const auto general =
      Generalize({{"a", 1, size_max}, {"b", 1, size_max}, {"c", 1, size_max}}, Building(make));
  ASSERT_TRUE(general.ok()) << general.status();
  EXPECT_FALSE(AtCapacity(*general).ok());
}

// The masks of a sum must not hide the contraction from the pass that rounds its factors.
TEST(VariablesTest, PrecisionIsTheGraphs) {
  const BuildFunction build = [](Values n) -> absl::StatusOr<graph::Graph> {
    Maker maker(DType::kFloat32, nullptr);
    maker.graph.outputs = {maker.Make("matmul", {maker.Input({4, n[0]}), maker.Input({n[0], 5})})};
    maker.graph.float32_matmul_precision = graph::MatmulPrecision::kHigh;
    return maker.graph;
  };
  const auto general = Generalize({{"n", 1, 20}}, build);
  ASSERT_TRUE(general.ok()) << general.status();
  const auto capacity = AtCapacity(*general);
  ASSERT_TRUE(capacity.ok()) << capacity.status();
  EXPECT_EQ(capacity->float32_matmul_precision, graph::MatmulPrecision::kHigh);
  const graph::Graph rounded = graph::RoundFactors(*capacity);
  EXPECT_EQ(absl::c_count_if(ir::TopologicalOrder(rounded.outputs), ir::IsRoundedToTf32), 2);
}

// A form that holds at the probes need not hold elsewhere.
TEST(VariablesTest, AValueOfAnotherFormIsNotCovered) {
  const Make make = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0]});
    m.graph.outputs = {n[0] == 3 ? m.Make("exp", {x}) : m.Make("sin", {x})};
  };
  const auto general = Generalize({{"n", 1, 40}}, Building(make));
  ASSERT_TRUE(general.ok()) << general.status();
  for (int64_t n = 1; n <= 40; ++n) {
    const auto special = Building(make)({n});
    ASSERT_TRUE(special.ok());
    EXPECT_EQ(IsRightAt(*general, *special, {n}), n != 3) << n;
  }
}

}  // namespace
}  // namespace kiln::variables
