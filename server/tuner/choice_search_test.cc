// Programs whose times are known for each set of choices.
#include "server/tuner/choice_search.h"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::tuner {
namespace {

using partition::Choice;
using partition::Choices;
using partition::Site;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class ChoiceSearchTest : public ::testing::Test {
 protected:
  // A program is named by its choices.
  absl::StatusOr<compiler::CompiledProgram> Compile(const Choices& choices) {
    ++compiled_;
    compiler::CompiledProgram program;
    program.graph_text = partition::Print(choices);
    const bool is_refused = refused_.contains(program.graph_text);
    program.choices = {
        {.key = "graph 0\n", .text = program.graph_text, .refusal = is_refused ? "no kernel" : ""}};
    return program;
  }

  double SecondsOf(const std::string& text) {
    const auto choices = partition::ParseChoices(text);
    double seconds = 100;
    for (const auto& choice : choices->values) {
      const auto gain = gains_.find(choice.first);
      if (gain != gains_.end()) seconds -= gain->second;
    }
    return choices->values.size() > 1 && together_ > 0 ? together_ : seconds;
  }

  absl::StatusOr<Comparison> Compare(const compiler::CompiledProgram& before,
                                     const compiler::CompiledProgram& after) {
    now_ += absl::Seconds(1);
    const double first = SecondsOf(before.graph_text), second = SecondsOf(after.graph_text);
    if (first == second) return Comparison();
    compared_.push_back(after.graph_text.substr(std::string("choices 1\n").size()));
    if (wrong_.contains(after.graph_text)) return absl::DataLossError("it is wrong");
    return Comparison{first, second, second < first};
  }

  ChoiceSearchResult Find(ChoiceSearchOptions options = {}) {
    options.now = [this] { return now_; };
    options.on_progress = [this](const ChoiceProgress& progress) {
      ended_.push_back(absl::StrCat(progress.number, "/", progress.kinds, " ", progress.site,
                                    progress.was_chosen ? ": chosen" : ": kept", progress.why));
    };
    const auto result = FindChoices(
        sites_, [this](const Choices& choices) { return Compile(choices); },
        [this](const auto& before, const auto& after) { return Compare(before, after); }, options);
    EXPECT_TRUE(result.ok()) << result.status();
    return *result;
  }

  static std::string Only(int64_t value) {
    return partition::Print({.values = {{value, Choice::kApart}}});
  }

  std::vector<Site> sites_ = {{.value = 7, .choice = Choice::kApart, .kind = "a", .text = "%7"},
                              {.value = 3, .choice = Choice::kApart, .kind = "b", .text = "%3"},
                              {.value = 5, .choice = Choice::kApart, .kind = "a", .text = "%5"}};
  std::map<int64_t, double> gains_;  // seconds, by value; none: other kernels are not made
  double together_ = 0;              // seconds of several choices; 0: as each alone
  std::set<std::string> refused_, wrong_;
  absl::Time now_ = absl::UnixEpoch();
  int compiled_ = 0;
  std::vector<std::string> compared_, ended_;
};

TEST_F(ChoiceSearchTest, WhatIsFasterIsChosenForAllSitesOfItsKind) {
  gains_ = {{7, 10}, {5, 10}, {3, -5}};
  const ChoiceSearchResult result = Find();
  EXPECT_EQ(partition::Print(result.choices), "choices 1\napart %5\napart %7\n");
  EXPECT_EQ(result.program.graph_text, partition::Print(result.choices));
  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(result.comparison.seconds_before, 100);
  EXPECT_EQ(result.comparison.seconds_after, 80);
  EXPECT_THAT(ended_, ElementsAre("1/2 %7 and 1 like it: chosen", "2/2 %3: kept"));
  // One of them, all of them, the other kind, and all choices together.
  EXPECT_EQ(result.tried, 4);
}

TEST_F(ChoiceSearchTest, AGainOfOneSiteIsKeptIfItsKindIsSlower) {
  gains_ = {{7, 10}, {5, -20}};
  EXPECT_EQ(partition::Print(Find().choices), Only(7));
  EXPECT_THAT(ended_, ElementsAre("1/2 %7 and 1 like it: chosen"));
}

TEST_F(ChoiceSearchTest, AChoiceThatMakesNoOtherKernelsCostsNothing) {
  const ChoiceSearchResult result = Find();
  EXPECT_TRUE(result.choices.empty());
  EXPECT_TRUE(result.is_complete);
  EXPECT_EQ(result.tried, 0);
  EXPECT_THAT(compared_, IsEmpty());
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(ChoiceSearchTest, WrongOnesAreNotChosen) {
  gains_ = {{7, 50}, {3, 10}};
  wrong_ = {Only(7)};
  EXPECT_EQ(partition::Print(Find().choices), Only(3));
  EXPECT_THAT(ended_, ElementsAre("1/2 %7 and 1 like it: keptit is wrong", "2/2 %3: chosen"));
}

TEST_F(ChoiceSearchTest, ChoicesThatCannotBeMadeAreNotCompared) {
  gains_ = {{7, 50}, {3, 10}};
  refused_ = {Only(7)};
  const ChoiceSearchResult result = Find();
  EXPECT_EQ(partition::Print(result.choices), Only(3));
  EXPECT_EQ(result.refused, 1);
  EXPECT_THAT(compared_, ElementsAre("apart %3\n"));
}

TEST_F(ChoiceSearchTest, WhatIsSlowerTogetherThanTheStartIsDropped) {
  gains_ = {{7, 10}, {3, 10}};
  sites_.pop_back();
  together_ = 85;  // faster than one alone
  EXPECT_EQ(Find().choices.values.size(), 2u);
  wrong_ = {"choices 1\napart %3\napart %7\n"};
  EXPECT_EQ(partition::Print(Find().choices), Only(7));
}

TEST_F(ChoiceSearchTest, TheStartIsTheIncumbent) {
  gains_ = {{7, -10}, {3, 10}};
  sites_.pop_back();
  const ChoiceSearchResult result = Find({.start = {.values = {{3, Choice::kApart}}}});
  EXPECT_EQ(partition::Print(result.choices), Only(3));
  EXPECT_EQ(result.comparison.seconds_before, 0);
}

TEST_F(ChoiceSearchTest, IsBounded) {
  gains_ = {{7, -1}, {3, 10}};
  ChoiceSearchResult result = Find({.kinds_max = 1});
  EXPECT_TRUE(result.choices.empty());
  EXPECT_TRUE(result.is_complete);
  result = Find({.seconds_max = 1});
  EXPECT_TRUE(result.choices.empty());
  EXPECT_FALSE(result.is_complete);
  int asked = 0;
  result = Find({.cancelled = [&] { return asked++ > 0; }});
  EXPECT_TRUE(result.choices.empty());
  EXPECT_FALSE(result.is_complete);
}

}  // namespace
}  // namespace kiln::tuner
