// The expansions of all composites, for their cases in the table of numerics: a file for each, so
// that reviews show changes of an expansion.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/graph/text.h"
#include "gtest/gtest.h"
#include "tests/golden/golden_file.h"
#include "tests/numerics/cases/cases.h"

namespace kiln::golden {
namespace {

std::vector<std::string> Composites() {
  std::vector<std::string> names;
  for (const ops::OpDef& op : ops::AllOps()) {
    if (op.kind == ops::Kind::kComposite) names.emplace_back(op.name);
  }
  return names;
}

class ExpansionTest : public testing::TestWithParam<std::string> {};

TEST_P(ExpansionTest, IsAsInTheFile) {
  std::string text;
  for (const numerics::Case& test_case : numerics::Cases()) {
    if (test_case.op != GetParam()) continue;
    const auto graph = numerics::MakeGraph(test_case, ir::DType::kFloat32);
    ASSERT_TRUE(graph.ok()) << graph.status();
    absl::StrAppend(&text, text.empty() ? "" : "\n", "# ", test_case.name, "\n",
                    graph::Print(*graph));
  }
  ASSERT_NE(text, "") << "tests/numerics has no case of it";
  EXPECT_EQ(DifferenceFromFile(absl::StrCat("expansions/", GetParam(), ".txt"), text), "");
}

INSTANTIATE_TEST_SUITE_P(Golden, ExpansionTest, testing::ValuesIn(Composites()),
                         [](const auto& info) { return info.param; });

TEST(Expansions, AreThoseOfOpsThatExist) {
  const std::vector<std::string> names = Composites();
  const std::set<std::string> known(names.begin(), names.end());
  for (const auto& file : std::filesystem::directory_iterator(Folder() + "/expansions")) {
    EXPECT_TRUE(known.contains(file.path().stem().string())) << file.path() << " is of no op";
  }
}

}  // namespace
}  // namespace kiln::golden
