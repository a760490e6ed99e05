// Chains of values other than sorts of which blocks of threads may process tiles: the results are
// those of the interpreter of graphs, also if tiles end within rows that are read backwards or next
// to a border.
#include <functional>
#include <string>
#include <vector>

#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/cases/primitive_values.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/machine_codes/machine_code.h"

namespace kiln::numerics {
namespace {

using ir::DType;
using ir::Node;
using ops::Builder;
using Nodes = std::vector<const Node*>;

struct Chain {
  std::string name;
  int64_t size;
  std::function<Nodes(Builder&, const Node*)> outputs;
};

void PrintTo(const Chain& chain, std::ostream* out) { *out << chain.name; }

const Node* FlippedRows(Builder& b, const Node* x, const ir::Shape& shape, int64_t axis) {
  return b.Reshape(b.Flip(b.Reshape(x, shape), {axis}), x->shape());
}

// Rows of 8, moved by `places` places; zeros are shifted in.
const Node* MovedRows(Builder& b, const Node* x, int64_t places) {
  const int64_t rows = x->shape()[0] / 8;
  const int64_t from = places < 0 ? -places : 0, to = places < 0 ? 8 : 8 - places;
  const Node* part = b.Shrink(b.Reshape(x, {rows, 8}), {0, rows, from, to});
  const Node* moved = b.Pad(part, {0, 0, places > 0 ? places : 0, places < 0 ? -places : 0});
  return b.Reshape(b.Mul(moved, 3), x->shape());
}

std::vector<Chain> Chains() {
  return {
      {"rows_of_two_lengths", 5400,
       [](Builder& b, const Node* x) -> Nodes {
         const Node* a = b.Add(b.Mul(x, 2), 1);
         const Node* short_rows = b.Add(b.Mul(FlippedRows(b, a, {9, 150, 4}, 2), 0.5), a);
         const Node* long_rows = b.Add(b.Mul(FlippedRows(b, a, {9, 600}, 1), 0.5), a);
         return {a, short_rows, long_rows};
       }},
      {"borders", 4096,
       [](Builder& b, const Node* x) -> Nodes {
         const Node* a = b.Add(b.Mul(x, 2), 1);
         const Node* left = MovedRows(b, a, -1);
         return {a, left, MovedRows(b, left, 3)};
       }},
      {"reduced", 4096,
       [](Builder& b, const Node* x) -> Nodes {
         const Node* a = b.Add(b.Mul(x, 2), 1);
         const Node* flipped = b.Add(FlippedRows(b, a, {64, 64}, 1), a);
         return {flipped, b.Sum(b.Reshape(flipped, {64, 64}), {1})};
       }},
  };
}

class TilesTest : public testing::TestWithParam<Chain> {};

TEST_P(TilesTest, OnPtx) {
  graph::Graph graph;
  graph.context = std::make_shared<ir::Context>();
  const ir::Shape shape = {GetParam().size};
  graph.inputs = {{DType::kFloat32, shape}};
  Builder b(*graph.context);
  graph.outputs = GetParam().outputs(b, b.Input(0, DType::kFloat32, shape));
  const std::vector<ops::HostTensor> inputs = {
      OperandValue({shape, -8, 8, DType::kFloat32}, DType::kFloat32, 0)};
  const auto results = On(Ptx())(graph, inputs);
  ASSERT_TRUE(results.ok()) << results.status();
  const auto expected = ops::Evaluate(graph.outputs, inputs);
  ASSERT_TRUE(expected.ok()) << expected.status();
  for (size_t i = 0; i < expected->size(); ++i) {
    EXPECT_EQ(Difference(results->outputs[i], (*expected)[i], 1e-5, 1e-5), "") << "output " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(All, TilesTest, testing::ValuesIn(Chains()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kiln::numerics
