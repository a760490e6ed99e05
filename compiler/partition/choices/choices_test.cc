#include "compiler/partition/choices/choices.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "compiler/partition/testing/fixture.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::partition {
namespace {

using ::testing::HasSubstr;

constexpr Choice kAll[] = {Choice::kApart, Choice::kJoin,      Choice::kKeep,
                           Choice::kSplit, Choice::kRecompute, Choice::kStore};

std::string RefusalOf(const std::string& text) {
  return std::string(ParseChoices(text).status().message());
}

TEST(ChoicesText, IsReadBack) {
  Choices choices;
  EXPECT_EQ(Print(choices), "choices 1\n");
  for (int i = 0; i < 6; ++i) choices.values.emplace(100 - i, kAll[i]);
  const auto read = ParseChoices(Print(choices));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, choices);
  EXPECT_EQ(Print({.values = {{57, Choice::kApart}, {12, Choice::kRecompute}}}),
            "choices 1\nrecompute %12\napart %57\n");
}

TEST(ChoicesText, EachChoiceHasAnOpposite) {
  for (const Choice choice : kAll) {
    EXPECT_NE(Opposite(choice), choice);
    EXPECT_EQ(Opposite(Opposite(choice)), choice);
  }
  EXPECT_EQ(Opposite(Choice::kApart), Choice::kJoin);
  EXPECT_EQ(Opposite(Choice::kSplit), Choice::kKeep);
  EXPECT_EQ(Opposite(Choice::kStore), Choice::kRecompute);
}

TEST(ChoicesText, MistakesAreNamed) {
  EXPECT_THAT(RefusalOf(""), HasSubstr("line 1: the text is empty"));
  EXPECT_THAT(RefusalOf("choices 2\n"), HasSubstr("line 1: choices of this version start with"));
  EXPECT_THAT(RefusalOf("choices 1"), HasSubstr("line 1: the line is not complete"));
  EXPECT_THAT(RefusalOf("choices 1\nglue %4\n"), HasSubstr("line 2: "));
  EXPECT_THAT(RefusalOf("choices 1\napart 4\n"), HasSubstr("is not a choice such as"));
  EXPECT_THAT(RefusalOf("choices 1\napart %4\napart %-1\n"), HasSubstr("line 3: "));
  EXPECT_THAT(RefusalOf("choices 1\napart %4x\n"), HasSubstr("is not the number of a value"));
  EXPECT_THAT(RefusalOf("choices 1\napart %99999999999\n"), HasSubstr("is not the number"));
  EXPECT_THAT(RefusalOf("choices 1\napart %4\njoin %4\n"),
              HasSubstr("line 3: the value %4 has the opposite choice, too"));
}

TEST(ChoicesText, IsBounded) {
  std::string text = "choices 1\n";
  for (size_t i = 0; i < kChoicesMax; ++i) absl::StrAppend(&text, "apart %", i, "\n");
  EXPECT_TRUE(ParseChoices(text).ok());
  absl::StrAppend(&text, "apart %", kChoicesMax, "\n");
  EXPECT_THAT(RefusalOf(text), HasSubstr("there are more than 4096 choices"));
}

class GraphKeyTest : public PartitionFixture {};

TEST_F(GraphKeyTest, DependsOnTheGraphAlone) {
  graph_.outputs = {b_.Neg(Input({4}))};
  const std::string key = GraphKey(graph_);
  EXPECT_THAT(key, ::testing::MatchesRegex("graph [0-9a-f]+\n"));
  b_.Exp2(graph_.outputs[0]);  // is in the context, but not in the graph
  EXPECT_EQ(GraphKey(graph_), key);
  graph_.outputs = {b_.Neg(graph_.outputs[0])};
  EXPECT_NE(GraphKey(graph_), key);
}

TEST_F(GraphKeyTest, NumbersThatTheGraphLacksAreIgnored) {
  graph_.outputs = {b_.Neg(Input({4}))};
  const ChosenValues chosen({.values = {{1, Choice::kApart}, {9, Choice::kStore}}}, graph_);
  EXPECT_TRUE(chosen.Has(graph_.outputs[0], Choice::kApart));
  EXPECT_FALSE(chosen.Has(graph_.outputs[0], Choice::kJoin));
  EXPECT_FALSE(chosen.Has(graph_.outputs[0]->operand(0), Choice::kApart));
}

}  // namespace
}  // namespace kiln::partition
