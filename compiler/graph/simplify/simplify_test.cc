#include "compiler/graph/simplify/simplify.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "compiler/graph/text.h"
#include "compiler/graph/verify.h"
#include "compiler/ir/text.h"
#include "gtest/gtest.h"

namespace kiln::graph {
namespace {

struct Case {
  std::string rule;
  std::string title;
  std::string before;
  std::string after;
};

// Completes a graph from its nodes: declares the inputs that the nodes read; the last node is the
// output.
std::string Complete(const std::string& nodes) {
  std::istringstream lines(nodes);
  std::map<std::string, std::string> inputs;
  std::string last;
  for (std::string line; std::getline(lines, line);) {
    std::vector<std::string_view> words = ir::SplitWords(line);
    if (words.size() < 4) continue;
    last = std::string(words[0]);
    if (words[2] == "input") inputs[std::string(words[4].substr(6))] = std::string(words[3]);
  }
  // An input that only the other half of a case uses is still declared.
  std::string text;
  int count = inputs.empty() ? 0 : std::stoi(inputs.rbegin()->first) + 1;
  for (int i = 0; i < count; ++i) {
    auto found = inputs.find(std::to_string(i));
    std::string type = found == inputs.end() ? "float32" : found->second;
    text += "input " + std::to_string(i) + " " + type + "\n";
  }
  return text + nodes + "output " + last + "\n";
}

std::vector<Case> ReadCases() {
  std::ifstream file(std::string(KILN_TEST_DATA) + "/simplify.txt");
  std::vector<Case> cases;
  bool after = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("#") || line.empty()) continue;
    if (line.starts_with("== ")) {
      size_t colon = line.find(':');
      cases.push_back({line.substr(3, colon - 3), line.substr(3), "", ""});
      after = false;
    } else if (line.starts_with("->")) {
      after = true;
      if (line == "-> same") cases.back().after = cases.back().before;
    } else {
      (after ? cases.back().after : cases.back().before) += line + "\n";
    }
  }
  return cases;
}

std::string NodesOf(const Graph& graph) {
  std::istringstream lines(Print(graph));
  std::string nodes;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("%")) nodes += line + "\n";
  }
  return nodes;
}

TEST(SimplifyTest, RulesDoWhatTheirCasesSay) {
  std::vector<Case> cases = ReadCases();
  ASSERT_GT(cases.size(), 60u);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.title);
    absl::StatusOr<Graph> graph = Parse(Complete(c.before));
    ASSERT_TRUE(graph.ok()) << graph.status();
    Graph simple = Simplify(*graph);
    EXPECT_EQ(NodesOf(simple), c.after);
    EXPECT_TRUE(Verify(simple).ok()) << Verify(simple);

    ir::Rewriter rewriter(*graph->context, SimplifyRules());
    rewriter.Rewrite(graph->outputs[0]);
    EXPECT_FALSE(rewriter.report().cyclic);
    EXPECT_EQ(rewriter.report().applied.contains(c.rule), c.rule != "none");
  }
}

TEST(SimplifyTest, EveryRuleHasACase) {
  std::set<std::string> shown;
  for (const Case& c : ReadCases()) shown.insert(c.rule);
  for (const ir::Rule& rule : SimplifyRules()) {
    EXPECT_TRUE(shown.contains(std::string(rule.name))) << rule.name;
  }
}

TEST(SimplifyTest, AGraphWithGradientsIsLeftAlone) {
  const std::string text =
      "input 0 float32\n%0 = input float32 index=0\n%1 = const float32 value=1\n"
      "%2 = mul float32 %0 %1\n%3 = mul float32 %2 %2\n%4 = gradient float32 %3 %2\noutput %4\n";
  EXPECT_EQ(Print(Simplify(*Parse(text))), text);
}

TEST(SimplifyTest, SourcesFollowTheirNodes) {
  Graph graph = *Parse(
      "input 0 float32\n%0 = input float32 index=0\n%1 = const float32 value=1\n"
      "%2 = mul float32 %0 %1\n%3 = sqrt float32 %2\noutput %3\nupdate 0 %2\n");
  graph.sources[graph.outputs[0]] = "train.py:7";
  Graph simple = Simplify(graph);
  EXPECT_EQ(simple.sources.at(simple.outputs[0]), "train.py:7");
  EXPECT_EQ(simple.updates[0].value->op(), ir::Op::kInput);
}

TEST(SimplifyTest, LongChains) {
  std::string text = "input 0 float32\n%0 = input float32 index=0\n%1 = const float32 value=1\n";
  int last = 0;
  for (int i = 2; i < 30000; ++i) {
    text += "%" + std::to_string(i) + " = mul float32 %" + std::to_string(last) + " %1\n";
    last = i;
  }
  text += "output %" + std::to_string(last) + "\n";
  EXPECT_EQ(NodesOf(Simplify(*Parse(text))), "%0 = input float32 index=0\n");
}

}  // namespace
}  // namespace kiln::graph
