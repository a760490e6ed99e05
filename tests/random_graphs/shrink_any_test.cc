// Shrinking, for any defect and any broken subject: it terminates, the result is no larger, and the
// check still fails for it.
#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/splat.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/str_cat.h"
#include "compiler/ir/walk.h"
#include "gtest/gtest.h"
#include "tests/numerics/compiled/run_compiled.h"
#include "tests/numerics/random/graph.h"
#include "tests/random_graphs/shrink.h"
#include "tests/random_graphs/trial.h"

namespace kiln::random_graphs {
namespace {

using ir::Node;
using ir::Op;

constexpr uint64_t kGraphs = 50;
// More checks than any shrinking that terminates needs.
constexpr int kUnlimited = 1'000'000;
constexpr int kManyChecks = 20'000;

Subject SubjectOf(uint64_t seed) {
  numerics::RandomGraphOptions options = PlanFor(seed).options;
  options.steps = std::min(options.steps, 8);
  options.wide = false;
  const numerics::RandomGraph random = numerics::MakeRandomGraph(options);
  return {random.graph, random.inputs, random.tolerances};
}

// Returns the number of nodes that compute something.
int64_t CountComputed(const Subject& subject) {
  const std::vector<const Node*> nodes = ir::TopologicalOrder(subject.graph.outputs);
  return std::count_if(nodes.begin(), nodes.end(), [](const Node* node) {
    return node->op() != Op::kInput && graph::SplatConst(node) == nullptr;
  });
}

int64_t CountOf(Op op, const Subject& subject) {
  const std::vector<const Node*> nodes = ir::TopologicalOrder(subject.graph.outputs);
  return std::count_if(nodes.begin(), nodes.end(),
                       [op](const Node* node) { return node->op() == op; });
}

// The first subject fails, others fail at random.
Check Arbitrary(const Subject& subject, uint64_t salt) {
  const std::string whole = Print(subject);
  return [whole, salt](const Subject& candidate) -> std::string {
    const std::string text = Print(candidate);
    const bool drawn = std::hash<std::string>()(StrCat(text, salt)) % 3 == 0;
    return drawn || text == whole ? "differs" : "";
  };
}

Check Always() {
  return [](const Subject&) { return "differs"; };
}
Check OnlyTheWhole(const Subject& subject) {
  const std::string whole = Print(subject);
  return [whole](const Subject& candidate) { return Print(candidate) == whole ? "differs" : ""; };
}
Check WithAtLeast(int64_t ops_min, Op op) {
  return
      [=](const Subject& candidate) { return CountOf(op, candidate) >= ops_min ? "differs" : ""; };
}
Check WithOutputs(size_t outputs_min) {
  return [=](const Subject& candidate) {
    return candidate.graph.outputs.size() >= outputs_min ? "differs" : "";
  };
}
Check Refused() {
  return [](const Subject& candidate) -> std::string {
    const auto compared =
        numerics::CompareWithInterpreter(candidate.graph, candidate.inputs, candidate.tolerances);
    return compared.ok() ? "" : compared.status().ToString();
  };
}

// Returns the shrunken subject.
Subject ExpectShrinks(const Subject& subject, const Check& check) {
  int checks = 0;
  const Check counting = [&](const Subject& candidate) {
    ++checks;
    return check(candidate);
  };
  const Subject small = Shrink(subject, counting, kUnlimited);
  EXPECT_LT(checks, kManyChecks);
  EXPECT_NE(check(small), "");
  EXPECT_LE(small.graph.outputs.size(), subject.graph.outputs.size());
  EXPECT_LE(CountComputed(small), CountComputed(subject));
  EXPECT_EQ(small.tolerances.size(), small.graph.outputs.size());
  if (graph::Verify(subject.graph).ok()) {
    const absl::Status legal = graph::Verify(small.graph);
    EXPECT_TRUE(legal.ok()) << legal << "\n" << Print(small);
  }
  return small;
}

template <typename TryFn>
void ForRandomSubjects(TryFn try_one) {
  for (uint64_t seed = 1; seed <= kGraphs && !testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(StrCat("seed ", seed));
    try_one(SubjectOf(seed), seed);
  }
}

TEST(ShrinkAny, ToNothingWhereAllIsWrong) {
  ForRandomSubjects([](const Subject& subject, uint64_t) {
    const Subject small = ExpectShrinks(subject, Always());
    EXPECT_EQ(small.graph.outputs.size(), 1u);
    EXPECT_EQ(CountComputed(small), 0) << Print(small);
  });
}

TEST(ShrinkAny, NotWhereOnlyTheWholeIsWrong) {
  constexpr int64_t kComputedMax = 60;  // each is tried several times, and compared as text
  ForRandomSubjects([](const Subject& subject, uint64_t) {
    if (CountComputed(subject) > kComputedMax) return;
    const Subject small = ExpectShrinks(subject, OnlyTheWhole(subject));
    EXPECT_EQ(Print(small), Print(subject));
  });
}

TEST(ShrinkAny, WhereItIsArbitrary) {
  ForRandomSubjects([](const Subject& subject, uint64_t seed) {
    ExpectShrinks(subject, Arbitrary(subject, seed));
  });
}

TEST(ShrinkAny, WhereItTakesSeveralNodes) {
  ForRandomSubjects([](const Subject& subject, uint64_t seed) {
    const Op op = seed % 2 == 0 ? Op::kReshape : Op::kAdd;
    ExpectShrinks(subject, WithAtLeast(CountOf(op, subject) / 2, op));
  });
}

TEST(ShrinkAny, WhereItTakesSeveralOutputs) {
  ForRandomSubjects([](const Subject& subject, uint64_t) {
    const Subject small = ExpectShrinks(subject, WithOutputs(2));
    EXPECT_EQ(small.graph.outputs.size(), 2u);
    EXPECT_EQ(CountComputed(small), 0) << Print(small);
  });
}

// Values that are missing, or have fewer bytes than elements.
TEST(ShrinkAny, InputsThatDoNotFit) {
  ForRandomSubjects([](Subject subject, uint64_t seed) {
    switch (seed % 3) {
      case 0:
        subject.inputs.clear();
        break;
      case 1:
        subject.inputs.resize(subject.inputs.size() / 2);
        break;
      default:
        for (ops::HostTensor& input : subject.inputs) input.bytes.resize(input.bytes.size() / 2);
    }
    EXPECT_NE(Print(subject), "");
    ExpectShrinks(subject, Always());
    ExpectShrinks(subject, Arbitrary(subject, seed));
    if (!Refused()(subject).empty()) ExpectShrinks(subject, Refused());
  });
}

TEST(ShrinkAny, TolerancesThatAreMissing) {
  ForRandomSubjects([](Subject subject, uint64_t) {
    subject.tolerances.clear();
    ExpectShrinks(subject, Always());
  });
}

// An expansion of no element to three, between nodes of a random graph: the interpreter would read
// out of bounds.
TEST(ShrinkAny, GraphsThatAreIllegal) {
  ForRandomSubjects([](Subject subject, uint64_t) {
    ir::Context& context = *subject.graph.context;
    const auto index = static_cast<int64_t>(subject.graph.inputs.size());
    const ir::DType dtype = subject.graph.outputs[0]->dtype();
    const Node* empty = context.Get(Op::kInput, dtype, {0}, {}, ir::InputAttr{index});
    subject.graph.inputs.push_back({dtype, {0}});
    subject.inputs.push_back(ops::HostTensor::Zeros(dtype, {0}));
    const Node* three = context.Get(Op::kExpand, dtype, {3}, {empty});
    subject.graph.outputs.push_back(context.Get(Op::kContiguous, dtype, {3}, {three}));
    subject.tolerances.push_back(0);
    const Check check = Refused();
    ASSERT_NE(check(subject), "");
    const Subject small = ExpectShrinks(subject, check);
    ASSERT_EQ(small.graph.outputs.size(), 1u);
    EXPECT_EQ(small.graph.outputs[0]->op(), Op::kExpand);
    EXPECT_EQ(CountComputed(small), 1);
    ExpectShrinks(subject, Always());
  });
}

}  // namespace
}  // namespace kiln::random_graphs
