#include "compiler/ops/rules/infer.h"

#include <set>

#include "compiler/ops/attributes.h"
#include "compiler/ops/rules/shape_cases.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Shape;
using testing::HasSubstr;

absl::StatusOr<Shape> Infer(std::string_view op, const std::vector<Shape>& operands,
                            const Attributes& attributes) {
  const OpDef& row = *FindOp(op);
  const auto completed = CompleteAttributes(row, attributes);
  if (!completed.ok()) return completed.status();
  return InferShape(row, operands, *completed);
}

TEST(InferShapeTest, Cases) {
  for (const ShapeCase& test_case : ShapeCases()) {
    SCOPED_TRACE(testing::Message()
                 << test_case.op << " " << testing::PrintToString(test_case.operands));
    ASSERT_NE(FindOp(test_case.op), nullptr);
    const auto result = Infer(test_case.op, test_case.operands, test_case.attributes);
    ASSERT_EQ(result.ok(), test_case.result.has_value()) << result.status();
    if (result.ok()) {
      EXPECT_EQ(*result, *test_case.result);
    } else {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_GT(result.status().message().size(), 20u) << "says too little";
    }
  }
}

TEST(InferShapeTest, EveryRuleHasACase) {
  std::set<std::string_view> works;
  for (const ShapeCase& test_case : ShapeCases()) {
    if (test_case.result.has_value()) works.insert(FindOp(test_case.op)->shape_rule.name);
  }
  for (const OpDef& op : AllOps()) EXPECT_TRUE(works.contains(op.shape_rule.name)) << op.name;
}

TEST(InferDTypeTest, Cases) {
  for (const DTypeCase& test_case : DTypeCases()) {
    SCOPED_TRACE(test_case.op);
    ASSERT_NE(FindOp(test_case.op), nullptr);
    const auto result = InferDType(*FindOp(test_case.op), test_case.operands, test_case.declared);
    ASSERT_EQ(result.ok(), test_case.result.has_value()) << result.status();
    if (result.ok()) {
      EXPECT_EQ(*result, *test_case.result);
    } else {
      EXPECT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(InferShapeTest, MessagesShowBothShapesAndTheRemedy) {
  const auto matmul = Infer("matmul", {{2, 3}, {4, 5}}, {});
  EXPECT_THAT(std::string(matmul.status().message()),
              testing::AllOf(HasSubstr("(2, 3)"), HasSubstr("(4, 5)"), HasSubstr("must equal")));
  const auto add = Infer("add", {{2, 3}, {4, 3}}, {});
  EXPECT_THAT(std::string(add.status().message()),
              testing::AllOf(HasSubstr("(2, 3)"), HasSubstr("(4, 3)"), HasSubstr("equal or 1")));
}

TEST(CheckShapeTest, Limits) {
  EXPECT_TRUE(CheckShape({}).ok());
  EXPECT_TRUE(CheckShape(Shape{0, 5}).ok());
  EXPECT_TRUE(CheckShape(Shape{kElementsMax}).ok());
  EXPECT_FALSE(CheckShape(Shape{kElementsMax, 2}).ok());
  EXPECT_FALSE(CheckShape(Shape{0, INT64_MAX, INT64_MAX}).ok());
  EXPECT_FALSE(CheckShape(Shape{-1}).ok());
  EXPECT_FALSE(CheckShape(Shape(kRankMax + 1, 1)).ok());
}

// Extremely large attributes must be refused and must not overflow.
TEST(InferShapeTest, ExtremeAttributes) {
  constexpr int64_t kInt64Max = INT64_MAX;
  constexpr int64_t kInt64Min = INT64_MIN;
  EXPECT_FALSE(Infer("pad", {{2}}, {{"padding", std::vector<int64_t>{kInt64Max, kInt64Max}}}).ok());
  EXPECT_FALSE(
      Infer("shrink", {{2}}, {{"bounds", std::vector<int64_t>{kInt64Min, kInt64Max}}}).ok());
  EXPECT_FALSE(Infer("sum", {{2}}, {{"axes", std::vector<int64_t>{kInt64Min}}}).ok());
  EXPECT_FALSE(
      Infer("window", {{2}}, {{"axis", int64_t{0}}, {"size", kInt64Max}, {"dilation", kInt64Max}})
          .ok());
  EXPECT_FALSE(Infer("concat", {{kElementsMax}, {kElementsMax}}, {}).ok());
  EXPECT_FALSE(Infer("conv2d", {{1, 1, 4, 4}, {1, 1, 2, 2}},
                     {{"padding", std::vector<int64_t>{kInt64Max, kInt64Max}}})
                   .ok());
  EXPECT_FALSE(Infer("one_hot", {{2}}, {{"classes", kInt64Max}}).ok());
  const auto one = [](int64_t value) { return std::vector<int64_t>{value}; };
  EXPECT_FALSE(
      Infer("conv_transpose1d", {{1, 1, 2}, {1, 1, 1}}, {{"stride", one(kInt64Max)}}).ok());
  EXPECT_FALSE(Infer("max_pool1d", {{1, 1, 4}},
                     {{"kernel", one(9000000000000000000)},
                      {"padding", one(4500000000000000000)},
                      {"stride", one(4400000000000000000)},
                      {"ceil_mode", true}})
                   .ok());
  // A stride beyond the end leaves one window.
  const auto pooled = Infer("max_pool1d", {{1, 1, 4}},
                            {{"kernel", one(3)}, {"stride", one(kInt64Max)}, {"ceil_mode", true}});
  ASSERT_TRUE(pooled.ok()) << pooled.status();
  EXPECT_EQ(*pooled, (ir::Shape{1, 1, 1}));
}

absl::Status Check(const ConstraintCase& test_case) {
  const OpDef& op = *FindOp(test_case.op);
  const auto completed = CompleteAttributes(op, test_case.attributes);
  if (!completed.ok()) return completed.status();
  const auto shape = InferShape(op, test_case.operands, *completed);
  if (!shape.ok()) return shape.status();
  const auto dtype = InferDType(op, test_case.dtypes, test_case.declared);
  if (!dtype.ok()) return dtype.status();
  return CheckConstraints({op, test_case.operands, *completed, test_case.dtypes, *shape, *dtype});
}

TEST(CheckConstraintsTest, Cases) {
  for (const ConstraintCase& test_case : ConstraintCases()) {
    SCOPED_TRACE(testing::Message()
                 << test_case.op << " " << testing::PrintToString(test_case.operands));
    ASSERT_NE(FindOp(test_case.op), nullptr);
    const absl::Status holds = Check(test_case);
    EXPECT_EQ(holds.ok(), test_case.holds) << holds;
    if (holds.ok()) continue;
    EXPECT_EQ(holds.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_GT(holds.message().size(), 20u) << "says too little";
  }
}

TEST(CheckConstraintsTest, EachHoldsAndFailsInACase) {
  std::set<std::string_view> holds;
  std::set<std::string_view> fails;
  for (const ConstraintCase& test_case : ConstraintCases()) {
    for (const Rule& constraint : FindOp(test_case.op)->constraints) {
      (test_case.holds ? holds : fails).insert(constraint.name);
    }
  }
  for (const OpDef& op : AllOps()) {
    for (const Rule& constraint : op.constraints) {
      EXPECT_TRUE(holds.contains(constraint.name) && fails.contains(constraint.name))
          << constraint.name;
    }
  }
}

TEST(CompleteAttributesTest, DefaultsAreAllowed) {
  for (const OpDef& op : AllOps()) {
    for (const AttributeDef& def : op.attributes) {
      EXPECT_TRUE(def.choices.empty() || def.type == AttributeDef::Type::kString) << op.name;
      if (!def.default_value.has_value()) continue;
      const Attributes given = {{std::string(def.name), *def.default_value}};
      OpDef alone = op;
      alone.attributes = {def};
      EXPECT_TRUE(CompleteAttributes(alone, given).ok()) << op.name << " " << def.name;
    }
  }
}

TEST(CompleteAttributesTest, DefaultsAndErrors) {
  const OpDef& sum = *FindOp("sum");
  const auto completed = CompleteAttributes(sum, {});
  ASSERT_TRUE(completed.ok());
  EXPECT_FALSE(BoolOf(*completed, "keepdims"));
  EXPECT_TRUE(IntsOf(*completed, "axes").empty());
  EXPECT_THAT(std::string(CompleteAttributes(sum, {{"axis", int64_t{1}}}).status().message()),
              testing::AllOf(HasSubstr("\"axis\""), HasSubstr("\"keepdims\"")));
  EXPECT_THAT(std::string(CompleteAttributes(sum, {{"keepdims", 1.5}}).status().message()),
              HasSubstr("must be bool"));
  const auto clip = CompleteAttributes(*FindOp("clip"), {{"min", int64_t{2}}});
  ASSERT_TRUE(clip.ok());
  EXPECT_EQ(FloatOf(*clip, "min"), 2.0);
}

}  // namespace
}  // namespace kiln::ops
