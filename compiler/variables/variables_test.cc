// A graph at capacity against the graph made for the values alone, both interpreted, at every value
// within small bounds.
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/autodiff/differentiate.h"
#include "compiler/graph/verify.h"
#include "compiler/ops/build.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/evaluate.h"
#include "compiler/variables/capacity.h"
#include "compiler/variables/covers.h"
#include "compiler/variables/generalize.h"
#include "gtest/gtest.h"

namespace kiln::variables {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;
using ops::Attributes;
using ops::Builder;
using ops::HostTensor;
using Values = absl::Span<const int64_t>;

// Builds graphs of ops by name; inputs are numbered as they are made.
struct Maker {
  std::shared_ptr<ir::Context> context = std::make_shared<ir::Context>();
  Builder b{*context};
  graph::Graph graph;

  const Node* Input(const ir::Shape& shape, DType dtype = DType::kFloat64) {
    graph.inputs.push_back({dtype, shape});
    return b.Input(static_cast<int64_t>(graph.inputs.size()) - 1, dtype, shape);
  }
  const Node* Make(std::string_view op, std::vector<const Node*> operands,
                   const Attributes& attributes = {}, DType dtype = DType::kInvalid) {
    const auto made = ops::Build(b, *ops::FindOp(op), operands, attributes, dtype);
    EXPECT_TRUE(made.ok()) << op << ": " << made.status();
    return *made;
  }
  std::vector<int64_t> List(std::initializer_list<int64_t> values) { return values; }
};

// What a test makes of the variables' values.
using Make = std::function<void(Maker& maker, Values n)>;

BuildFunction Building(const Make& make) {
  return [make](Values values) -> absl::StatusOr<graph::Graph> {
    Maker maker;
    make(maker, values);
    maker.graph.context = maker.context;
    return autodiff::Differentiate(maker.graph);
  };
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

// `value` at the beginning of a buffer whose rest must not matter.
HostTensor Packed(const HostTensor& value, const graph::Input& input) {
  HostTensor packed = HostTensor::Zeros(input.dtype, input.shape);
  for (int64_t i = 0; i < packed.size(); ++i) {
    if (ir::IsFloat(input.dtype)) {
      packed.SetFloat(i, std::numeric_limits<double>::quiet_NaN());
    } else {
      packed.SetInt(i, 77 + i);
    }
  }
  std::copy(value.bytes.begin(), value.bytes.end(), packed.bytes.begin());
  return packed;
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

// How many values have the one program; the others would get programs of their own.
int ExpectOneGraph(const std::vector<graph::Variable>& variables, const Make& make,
                   const std::string& name) {
  const BuildFunction build = Building(make);
  const auto general = Generalize(variables, build);
  EXPECT_TRUE(general.ok()) << name << ": " << general.status();
  if (!general.ok()) return 0;
  const auto capacity = AtCapacity(*general);
  EXPECT_TRUE(capacity.ok()) << name << ": " << capacity.status();
  if (!capacity.ok()) return 0;
  const absl::Status legal = graph::Verify(*capacity);
  EXPECT_TRUE(legal.ok()) << name << ": " << legal;
  if (!legal.ok()) return 0;
  int covered = 0;
  ForAll(variables, {}, [&](Values values) {
    std::string where = name + " at";
    for (const int64_t value : values) where += " " + std::to_string(value);
    const auto special = build(values);
    ASSERT_TRUE(special.ok()) << where << ": " << special.status();
    if (!Covers(*general, *special, values)) return;
    ++covered;
    ExpectEqualAt(*special, *capacity, values, where);
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
  // At a size of 1 the composites may take another form; that is a program of its own.
  EXPECT_GE(ExpectOneGraph({{"n", 1, 7}}, GetParam().make, GetParam().name), 6);
}

INSTANTIATE_TEST_SUITE_P(Ops, OneGraphTest, testing::ValuesIn(Cases()),
                         [](const auto& info) { return info.param.name; });

// A graph whose steps depend on the seed alone; sizes are a * n + b.
class RandomMaker {
 public:
  RandomMaker(Maker& maker, uint64_t seed, int64_t n) : m_(maker), state_(seed * 2 + 1), n_(n) {}

  void Run(int steps) {
    Add(m_.Input({3, n_}), {{0, 3}, {1, 0}});
    Add(m_.Input({n_, 2}), {{1, 0}, {0, 2}});
    Add(m_.Input({2, n_ + 1, 2}), {{0, 2}, {1, 1}, {0, 2}});
    for (int i = 0; i < steps; ++i) Step();
    const Node* last = values_.back().node;
    const Node* loss = m_.Make("sum", {m_.Make("mul", {last, last})});
    m_.graph.outputs = {last, values_[values_.size() / 2].node, loss};
    for (int i = 0; i < 3; ++i) {
      m_.graph.outputs.push_back(m_.Make("gradient", {loss, values_[i].node}));
    }
  }

 private:
  struct Size {
    int64_t a, b;
    bool operator==(const Size&) const = default;
  };
  struct Value {
    const Node* node;
    std::vector<Size> dims;
  };
  void Add(const Node* node, std::vector<Size> dims) { values_.push_back({node, std::move(dims)}); }
  int64_t Pick(int64_t count) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<int64_t>((state_ >> 33) % count);
  }
  int64_t At(Size size) const { return size.a * n_ + size.b; }

  void Step() {
    const Value x = values_[values_.size() - 1 - Pick(std::min<int64_t>(3, values_.size()))];
    const int64_t rank = static_cast<int64_t>(x.dims.size());
    const int64_t axis = Pick(rank);
    const Size size = x.dims[axis];
    std::vector<Size> dims = x.dims;
    std::vector<int64_t> pairs(2 * rank, 0);
    switch (Pick(12)) {
      case 0:
        return Add(m_.Make("sin", {x.node}), dims);
      case 1:
        return Add(m_.Make("softmax", {x.node}, {{"axis", axis}}), dims);
      case 2:
        return Add(
            m_.Make("sub", {x.node, m_.Make("mean", {x.node},
                                            {{"axes", m_.List({axis})}, {"keepdims", true}})}),
            dims);
      case 3:
        return Add(m_.Make("flip", {x.node}, {{"axes", m_.List({axis})}}), dims);
      case 4: {  // pad, by a number of elements that may vary
        if (size.a + size.b > 6) return;
        const Size before = Pick(2) == 0 ? Size{0, Pick(3)} : Size{1, -1};
        pairs[2 * axis] = At(before);
        pairs[2 * axis + 1] = Pick(2);
        dims[axis] = {size.a + before.a, size.b + before.b + pairs[2 * axis + 1]};
        return Add(m_.Make("pad", {x.node}, {{"padding", pairs}}), dims);
      }
      case 5: {  // shrink to what is there at every n
        if (size.a + size.b < 2) return;
        for (int64_t i = 0; i < rank; ++i) pairs[2 * i + 1] = At(dims[i]);
        const int64_t begin = Pick(2);
        pairs[2 * axis] = begin;
        pairs[2 * axis + 1] -= 1 - begin;
        dims[axis] = {size.a, size.b - 1};
        return Add(m_.Make("shrink", {x.node}, {{"bounds", pairs}}), dims);
      }
      case 6:
        if (size.a + size.b > 6) return;
        dims[axis] = {2 * size.a, 2 * size.b};
        return Add(m_.Make("concat", {x.node, m_.Make("exp", {m_.Make("sin", {x.node})})},
                           {{"axis", axis}}),
                   dims);
      case 7: {
        std::vector<int64_t> axes(rank);
        for (int64_t i = 0; i < rank; ++i) axes[i] = (i + axis) % rank;
        for (int64_t i = 0; i < rank; ++i) dims[i] = x.dims[axes[i]];
        return Add(m_.Make("permute", {x.node}, {{"axes", axes}}), dims);
      }
      case 8: {
        if (rank < 2) return;
        const Node* turned = m_.b.Transpose(x.node, -1, -2);
        dims.back() = dims[rank - 2];
        return Add(m_.Make("tanh", {m_.Make("matmul", {x.node, turned})}), dims);
      }
      case 9: {  // two dimensions made one, then apart in another order
        if (rank < 2 || (x.dims[0].a != 0 && x.dims[1].a != 0)) return;
        const Size joined = {x.dims[0].a * x.dims[1].b + x.dims[0].b * x.dims[1].a,
                             x.dims[0].b * x.dims[1].b};
        std::vector<Size> flat = {joined};
        flat.insert(flat.end(), x.dims.begin() + 2, x.dims.end());
        ir::Shape shape;
        for (const Size& one : flat) shape.push_back(At(one));
        const Node* reshaped = m_.b.Reshape(m_.Make("neg", {x.node}), shape);
        if (Pick(2) == 0) return Add(reshaped, flat);
        std::swap(dims[0], dims[1]);
        shape.insert(shape.begin() + 1, At(dims[1]));
        shape[0] = At(dims[0]);
        return Add(m_.b.Reshape(m_.Make("cos", {reshaped}), shape), dims);
      }
      case 10: {
        dims.erase(dims.begin() + axis);
        if (dims.empty()) return;
        const char* const op = Pick(2) == 0 ? "max" : "logsumexp";
        return Add(m_.Make(op, {x.node}, {{"axes", m_.List({axis})}}), dims);
      }
      default: {  // by places that run backwards and out of range
        const Node* places =
            m_.Make("sub", {m_.b.ConstInt(DType::kInt64, 3),
                            m_.Make("iota", {}, {{"shape", m_.List({n_})}}, DType::kInt64)});
        dims[axis] = {1, 0};
        return Add(m_.Make("gather", {x.node, places}, {{"axis", axis}}), dims);
      }
    }
  }

  Maker& m_;
  uint64_t state_;
  const int64_t n_;
  std::vector<Value> values_;
};

TEST(VariablesTest, RandomGraphs) {
  int covered = 0;
  constexpr int kGraphs = 200;
  for (int seed = 0; seed < kGraphs && !HasFailure(); ++seed) {
    const Make make = [seed](Maker& m, Values n) { RandomMaker(m, seed, n[0]).Run(8); };
    covered += ExpectOneGraph({{"n", 1, 6}}, make, "seed " + std::to_string(seed));
  }
  // At n = 1 many take another form.
  EXPECT_GE(covered, kGraphs * 4);
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
  const Make square = [](Maker& m, Values n) {
    m.graph.outputs = {m.Make("iota", {}, {{"shape", m.List({n[0] * n[0]})}}, DType::kInt32)};
  };
  EXPECT_EQ(Generalize({{"n", 1, 20}}, Building(square)).status().code(),
            absl::StatusCode::kUnimplemented);
  const Make two_forms = [](Maker& m, Values n) {
    const Node* x = m.Input({n[0]});
    m.graph.outputs = {n[0] % 2 == 0 ? m.Make("exp", {x}) : m.Make("sin", {x})};
  };
  EXPECT_EQ(Generalize({{"n", 1, 20}}, Building(two_forms)).status().code(),
            absl::StatusCode::kUnimplemented);
}

// What holds where it was looked at need not hold elsewhere.
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
    EXPECT_EQ(Covers(*general, *special, {n}), n != 3) << n;
  }
}

}  // namespace
}  // namespace kiln::variables
