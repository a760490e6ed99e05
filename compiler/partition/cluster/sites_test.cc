#include "compiler/partition/cluster/sites.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SitesTest : public PartitionFixture {
 protected:
  // Partitions with these choices.
  compiler::PassState Chosen(const Choices& choices = {}) {
    compiler::Options options;
    options.choices = [&choices](const std::string&, const drivers::Target&) {
      return std::optional<std::string>(Print(choices));
    };
    std::vector<compiler::PassReport> reports;
    auto state = compiler::RunPasses(graph_, target_, {"normalize", ""}, options, &reports);
    EXPECT_TRUE(state.ok()) << state.status();
    EXPECT_EQ(state->choices.refusal, "");
    return *std::move(state);
  }

  std::vector<Site> Sites(const compiler::PassState& state) {
    return FindSites(state.graph, state.clusters, target_);
  }

  // "split reduce_sum": the choices and the ops of their values.
  std::vector<std::string> Words(const compiler::PassState& state) {
    const std::vector<Node> values = NumberedValues(state.graph);
    std::vector<std::string> words;
    for (const Site& site : Sites(state)) {
      words.push_back(absl::StrCat(std::string(Name(site.choice)), " ",
                                   std::string(ir::Name(values[site.value]->op()))));
    }
    return words;
  }

  static bool IsStored(const compiler::PassState& state) {
    for (const Member& member : state.clusters.members)
      if (member.node->op() == ir::Op::kMul) return true;
    return false;
  }

  // The kernels if the first site of this choice is chosen.
  std::vector<Group> With(Choice choice) {
    for (const Site& site : Sites(Chosen())) {
      if (site.choice == choice) return Chosen({.values = {{site.value, choice}}}).partition.groups;
    }
    ADD_FAILURE() << "no site for " << std::string(Name(choice));
    return {};
  }
};

TEST_F(SitesTest, AnEpilogueCanBeSplitOffAndKept) {
  graph_.outputs = {b_.Add(Product(64, 32, 48), Input({64, 48}))};
  EXPECT_THAT(Chosen().partition.groups, SizeIs(1));
  EXPECT_THAT(Words(Chosen()), ElementsAre("split reduce_sum"));
  EXPECT_THAT(With(Choice::kSplit), SizeIs(2));
  const int64_t value = Sites(Chosen())[0].value;
  const compiler::PassState split = Chosen({.values = {{value, Choice::kSplit}}});
  EXPECT_THAT(Words(split), ElementsAre("keep reduce_sum"));
}

TEST_F(SitesTest, AValueOfSeveralReadersCanBeStoredOrRecomputed) {
  Node x = b_.Mul(Input({64, 64}), Input({64, 64}));
  graph_.outputs = {b_.Sum(x, {1}), b_.Sum(x, {0})};
  const compiler::PassState state = Chosen();
  const bool is_stored = IsStored(state);
  EXPECT_THAT(Words(state), Contains(is_stored ? "recompute mul" : "store mul"));
  const Choice other = is_stored ? Choice::kRecompute : Choice::kStore;
  for (const Site& site : Sites(state)) {
    if (site.choice != other) continue;
    const compiler::PassState changed = Chosen({.values = {{site.value, other}}});
    EXPECT_NE(IsStored(changed), is_stored);
    EXPECT_THAT(Words(changed), Contains(is_stored ? "store mul" : "recompute mul"));
  }
}

TEST_F(SitesTest, AValueCanLeaveItsKernel) {
  Node x = b_.Reshape(b_.Sum(Input({64, 64}), {1}), {64, 1});
  graph_.outputs = {b_.Mul(b_.Expand(b_.Exp2(x), {64, 64}), Input({64, 64}))};
  const size_t before = Chosen().partition.groups.size();
  EXPECT_THAT(Words(Chosen()), Contains("apart mul"));
  EXPECT_THAT(With(Choice::kApart), SizeIs(before + 1));
}

TEST_F(SitesTest, AValueThatStayedOutCanJoin) {
  // Too few rows for many cores, so that it is two kernels.
  Node x = b_.Reshape(b_.Sum(Input({2, 1 << 16}), {1}), {2, 1});
  Node y = b_.Mul(Input({2, 1 << 16}), b_.Expand(x, {2, 1 << 16}));
  graph_.outputs = {b_.Sum(y, {1})};
  const size_t before = Chosen().partition.groups.size();
  EXPECT_THAT(Words(Chosen()), Contains("join reduce_sum"));
  EXPECT_LT(With(Choice::kJoin).size(), before);
}

TEST_F(SitesTest, SitesThatLookAlikeAreOfOneKind) {
  Node x = Input({64, 32});
  std::vector<std::string> kinds;
  for (int layer = 0; layer < 2; ++layer)
    graph_.outputs.push_back(b_.Add(Product(64, 32, 48), Input({64, 48})));
  graph_.outputs.push_back(b_.Add(Product(64, 32, 40), Input({64, 40})));
  graph_.outputs.push_back(x);
  for (const Site& site : Sites(Chosen())) kinds.push_back(site.kind);
  ASSERT_THAT(kinds, SizeIs(3));
  // Sites of larger values come first.
  EXPECT_EQ(kinds[0], kinds[1]);
  EXPECT_NE(kinds[0], kinds[2]);
}

TEST_F(SitesTest, OneKernelOfOneValueHasNone) {
  graph_.outputs = {b_.Neg(Input({64}))};
  EXPECT_THAT(Sites(Chosen()), IsEmpty());
}

// Choices of another graph, or of a value that cannot be chosen so, change nothing.
TEST_F(SitesTest, ChoicesThatCannotBeMadeAreIgnored) {
  graph_.outputs = {b_.Add(Product(64, 32, 48), Input({64, 48}))};
  const std::string before = Print(Chosen().partition);
  Choices choices;
  const auto count = static_cast<int64_t>(NumberedValues(Chosen().graph).size());
  for (int64_t value = 0; value < count; ++value) {
    choices.values.emplace(value, Choice::kRecompute);
    choices.values.emplace(value, Choice::kKeep);
    choices.values.emplace(value, Choice::kJoin);
  }
  EXPECT_EQ(Print(Chosen(choices).partition), before);
}

}  // namespace
}  // namespace kiln::partition
