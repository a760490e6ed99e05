#include <map>

#include "compiler/ops/rules/rule_run.h"
#include "compiler/ops/rules/rule_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::ops {
namespace {

using ir::Shape;
using testing::HasSubstr;

// Evaluates a rule's text for operands a and, if given, b.
absl::StatusOr<Shape> Says(std::string_view text, const std::vector<Shape>& shapes,
                           const Attributes& attributes = {}) {
  const auto program = ParseRule({"example", "a, b?", text});
  if (!program.ok()) return program.status();
  const OpDef op = {.name = "op", .operands = {"a", "b?"}};
  const RuleQuery query{op, shapes, attributes};
  return RuleRun(*program, query).Run();
}

TEST(RuleTest, ComputesAsPython) {
  const std::map<std::string_view, Shape> cases = {
      {"-> (1 + 2 * 3, (1 + 2) * 3, 7 - 2 - 1)", {7, 9, 4}},
      {"-> (-7 // 2, -7 % 2, 7 // 2, 7 % -2)", {-4, 1, 3, -1}},
      {"-> (1 < 2 < 3, 1 < 3 < 2, 2 >= 2, 2 != 2, not 1 == 2)", {1, 0, 1, 0, 1}},
      {"-> (1 in (1, 2), 3 not in (1, 2))", {1, 1}},
      {"-> (1 and 0 or 1, 1 and (0 or 0))", {1, 0}},
      {"-> (1,) if len(a) == 3 else (2,)", {1}},
      {"-> a[1:] + a[:-1] + a[-1:] + a[5:] + a[2:1]", {3, 4, 2, 3, 4}},
      {"-> (a[0], a[-1], len(shapes), given(b))", {2, 4, 1, 0}},
      {"-> tuple(2 * size for size in a if size > 2)", {6, 8}},
      {"-> (min(3, 1, 2), max(1, 2), abs(-2), sum(i for i in range(1, 4)), prod(a))",
       {1, 2, 2, 6, 24}},
      {"x = a[0]\n  x = x + 1\n  -> (x,)", {3}},
      {"-> (\"ab\" == 'ab', () == a, attributes[\"axis\"])", {1, 0, -1}}};
  for (const auto& [text, wanted] : cases) {
    const auto result = Says(text, {{2, 3, 4}}, {{"axis", int64_t{-1}}});
    EXPECT_TRUE(result.ok() && *result == wanted)
        << text << " gives " << (result.ok() ? ToString(*result) : result.status().ToString());
  }
}

TEST(RuleTest, ChecksSayWhatMet) {
  constexpr std::string_view kText = R"rule(
    check len(a) == 2 or given(b): "a \"{op.name}\" of {a}; "
      'it needs {len(a) - 1} more'
    check size > 0 for size in a: "a size of {size}"
    -> a
  )rule";
  EXPECT_TRUE(Says(kText, {{2, 3}}).ok());
  EXPECT_THAT(std::string(Says(kText, {{2, 3, 4}}).status().message()),
              "a \"op\" of (2, 3, 4); it needs 2 more");
  const absl::Status zero = Says(kText, {{2, 0, -1}, {}}).status();
  EXPECT_EQ(zero.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(zero.message()), "a size of 0");
}

TEST(RuleTest, NothingOverflows) {
  for (const std::string_view text :
       {"-> (a[0] * a[0],)", "-> (a[0] + a[0],)", "-> (-a[0] - a[0],)", "-> (prod(a),)",
        "-> (sum(x for x in a),)", "-> (-(-a[0] - 1),)"}) {
    EXPECT_EQ(Says(text, {{INT64_MAX, INT64_MAX}}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << text;
  }
}

// Every mismatch between a rule and its row is a defect.
TEST(RuleTest, DefectsAreTold) {
  const std::map<std::string_view, std::string_view> cases = {
      {"-> a + 1", "another type"},
      {"-> (a[3],)", "out of range"},
      {"-> (1 // 0,)", "by zero"},
      {"-> (attributes[\"axis\"],)", "axis"},
      {"-> b", "another type"},
      {"-> (c,)", "named c"},
      {"-> (c,)\n  c = 1", "named c"},
      {"c = c\n  -> (c,)", "named c"},
      {"-> len()", "len takes 1 argument, not 0"},
      {"-> tuple(a, a)", "tuple takes 1 argument, not 2"},
      {"-> normalize_axes(a)", "normalize_axes takes 2 arguments, not 1"},
      {"-> range(1, 2, 3)", "range takes 1 or 2 arguments, not 3"},
      {"-> (min(1),)", "min takes 2 or more arguments, not 1"},
      {"-> range(i for i in a, 2)", "should stand"},
      {"-> sqrt(a)", "a function"},
      {"-> (1,", "should stand"},
      {"check a", "should stand"},
      {"check a == (): \"{a\"", "brace"},
      {"-> a $", "no token"},
      {"-> \"a", "no token"},
      {"x = 1 -> a", "the end"},
      {"-> (\"x\".size,)", "another type"},
      {"-> (99999999999999999999,)", "number"}};
  for (const auto& [text, wanted] : cases) {
    const absl::Status status = Says(text, {{2, 3, 4}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr(wanted)) << text;
  }
}

// The client's functions are the same text in Python, where the scope must be the same.
TEST(RuleTest, VariablesOfForAreKnownThereAlone) {
  const std::vector<std::string_view> refused = {
      "-> tuple(i for i in a) + (i,)",
      "-> tuple(i for i in i)",
      "-> tuple(i for i in a if sum(i for i in a) > 0)",
      "-> tuple(a for a in (1, 2))",
      "-> tuple(op for op in a)",
      "x = 1\n  -> tuple(x for x in a)",
      "check x > 0 for x in a: \"{x}\"\n  -> (x,)",
      "check x > 0 for x in x: \"{x}\"\n  -> a",
      "x = 1\n  check x > 0 for x in a: \"{x}\"\n  -> a"};
  for (const std::string_view text : refused) {
    const absl::Status status = Says(text, {{2, 3, 4}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal) << text;
    EXPECT_THAT(std::string(status.message()),
                testing::AnyOf(HasSubstr("nothing is named"), HasSubstr("names something else")))
        << text;
  }
  const std::map<std::string_view, Shape> taken = {
      {"-> tuple(i for i in a) + tuple(-i for i in a)", {2, 3, 4, -2, -3, -4}},
      {"-> tuple(sum(i * j for i in a) for j in a)", {18, 27, 36}},
      {"-> tuple(sum(i for i in range(j)) for j in a if sum(i for i in range(j)) > 1)", {3, 6}},
      {"check i > 0 for i in a: \"{i}\"\n  i = 7\n  -> (i,)", {7}},
      {"check i > 0 for i in a: \"{i}\"\n  -> tuple(i for i in a)", {2, 3, 4}}};
  for (const auto& [text, wanted] : taken) {
    const auto result = Says(text, {{2, 3, 4}});
    EXPECT_TRUE(result.ok() && *result == wanted)
        << text << " gives " << (result.ok() ? ToString(*result) : result.status().ToString());
  }
}

// Documents and clients identify rules by their names.
TEST(RuleTest, EachNameHasOneText) {
  // The text and the names of its operands.
  std::map<std::string_view, std::pair<std::string_view, std::string_view>> texts;
  for (const OpDef& op : AllOps()) {
    std::vector<Rule> rules = {op.shape_rule};
    rules.insert(rules.end(), op.constraints.begin(), op.constraints.end());
    for (size_t i = 0; i < rules.size(); ++i) {
      const std::pair written(rules[i].operands, rules[i].text);
      EXPECT_EQ(texts.emplace(rules[i].name, written).first->second, written);
      const bool gives_shape = op.programs[i]->steps.back().kind == RuleStep::Kind::kResult;
      EXPECT_EQ(gives_shape, i == 0) << rules[i].name;
    }
  }
}

}  // namespace
}  // namespace kiln::ops
