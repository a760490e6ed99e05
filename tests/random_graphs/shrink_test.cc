#include "tests/random_graphs/shrink.h"

#include <algorithm>

#include "compiler/autodiff/differentiate.h"
#include "compiler/ir/testing/substitute.h"
#include "compiler/ir/walk.h"
#include "compiler/ops/builder.h"
#include "compiler/ops/testing/evaluate.h"
#include "gtest/gtest.h"
#include "tests/numerics/compare.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/random/graph.h"

namespace kiln::random_graphs {
namespace {

using ir::Node;
using ir::Op;

// Returns the graph as compiled by a compiler that replaces one op by another for the same
// operands.
std::vector<const Node*> Miscompiled(const graph::Graph& graph, Op from, Op to) {
  std::vector<const Node*> roots = graph.outputs;
  for (;;) {
    const std::vector<const Node*> order = ir::TopologicalOrder(roots);
    const auto wrong = std::find_if(order.begin(), order.end(),
                                    [&](const Node* node) { return node->op() == from; });
    if (wrong == order.end()) return roots;
    const Node* node = *wrong;
    const Node* other =
        graph.context->Get(to, node->dtype(), node->shape(),
                           {node->operands().begin(), node->operands().end()}, node->attribute());
    roots = ir::Substitute(*graph.context, roots, {{node, other}});
  }
}

Check TakesFor(Op from, Op to) {
  return [=](const Subject& subject) -> std::string {
    const auto expected = ops::Evaluate(subject.graph.outputs, subject.inputs);
    const auto actual = ops::Evaluate(Miscompiled(subject.graph, from, to), subject.inputs);
    EXPECT_TRUE(expected.ok() && actual.ok());
    for (size_t i = 0; i < expected->size(); ++i) {
      std::string wrong = numerics::Difference((*actual)[i], (*expected)[i], 1e-3, 1e-3);
      if (!wrong.empty()) return wrong;
    }
    return "";
  };
}

Subject RandomSubject(uint64_t seed) {
  const numerics::RandomGraph random = numerics::MakeRandomGraph(seed, 40);
  return {random.graph, random.inputs, random.tolerances};
}

std::vector<const Node*> InnerNodes(const Subject& subject) {
  std::vector<const Node*> nodes = ir::TopologicalOrder(subject.graph.outputs);
  nodes.erase(std::remove_if(nodes.begin(), nodes.end(),
                             [](const Node* node) {
                               return node->op() == Op::kInput || node->op() == Op::kConst;
                             }),
              nodes.end());
  return nodes;
}

// A graph of some hundred nodes shrinks to the one node that was miscompiled.
void ExpectShrunkTo(Op from, Op to) {
  const Check check = TakesFor(from, to);
  int shrunk = 0;
  for (uint64_t seed = 1; seed < 60 && shrunk < 3; ++seed) {
    const Subject subject = RandomSubject(seed);
    if (check(subject).empty()) continue;
    ++shrunk;
    const Subject small = Shrink(subject, check);
    EXPECT_NE(check(small), "");
    const std::vector<const Node*> nodes = InnerNodes(small);
    ASSERT_EQ(nodes.size(), 1u) << "seed " << seed << "\n" << Print(small);
    EXPECT_EQ(nodes[0]->op(), from);
    EXPECT_EQ(small.graph.inputs.size(), small.inputs.size());
    EXPECT_LE(small.inputs.size(), 2u);
  }
  EXPECT_EQ(shrunk, 3);
}

TEST(Shrink, LeavesTheOneNodeThatIsMiscompiled) {
  ExpectShrunkTo(Op::kMax, Op::kMin);
  ExpectShrunkTo(Op::kSub, Op::kAdd);
}

// A defect of two nodes together, as in fusion: the sum of a product.
TEST(Shrink, LeavesThePairThatIsMiscompiled) {
  const auto is_pair = [](const Node* node) {
    return node->op() == Op::kReduceSum && node->operand(0)->op() == Op::kMul;
  };
  const Check check = [&](const Subject& subject) -> std::string {
    const std::vector<const Node*> nodes = InnerNodes(subject);
    return std::any_of(nodes.begin(), nodes.end(), is_pair) ? "a sum of products" : "";
  };
  for (uint64_t seed = 1; seed < 60; ++seed) {
    const Subject subject = RandomSubject(seed);
    if (check(subject).empty()) continue;
    const Subject small = Shrink(subject, check);
    EXPECT_EQ(InnerNodes(small).size(), 2u) << Print(small);
    return;
  }
  FAIL() << "no graph has such a pair";
}

TEST(Shrink, StopsAfterItsChecks) {
  int checks = 0;
  const Check check = [&](const Subject&) { return ++checks, std::string("wrong"); };
  Shrink(RandomSubject(3), check, 3);
  EXPECT_EQ(checks, 3);
}

}  // namespace
}  // namespace kiln::random_graphs
