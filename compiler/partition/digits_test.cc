#include "compiler/partition/digits.h"

#include "gtest/gtest.h"

namespace kiln::partition {

std::ostream& operator<<(std::ostream& out, const Digit& digit) {
  return out << "(" << digit.loop << "/" << digit.stride << "%" << digit.extent << ")";
}

namespace {

using ir::Op;

class DigitsTest : public testing::Test {
 protected:
  const ir::Node* Input(ir::Shape shape) {
    return context_.Get(Op::kInput, ir::DType::kFloat32, std::move(shape), {}, ir::InputAttr{});
  }
  const ir::Node* Move(Op op, const ir::Node* x, ir::Shape shape, std::vector<int64_t> ints) {
    return context_.Get(op, ir::DType::kFloat32, std::move(shape), {x},
                        ir::IntsAttr{std::move(ints)});
  }
  const ir::Node* Reshape(const ir::Node* x, ir::Shape shape) {
    return context_.Get(Op::kReshape, ir::DType::kFloat32, std::move(shape), {x});
  }
  ir::Context context_;
};

TEST_F(DigitsTest, SplitAndJoin) {
  const Digits whole = {{0, 1, 12}};
  const auto parts = Split(whole, {3, 4});
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ((*parts)[0], (Digits{{0, 4, 3}}));
  EXPECT_EQ((*parts)[1], (Digits{{0, 1, 4}}));
  EXPECT_EQ(Normalized({(*parts)[0][0], (*parts)[1][0]}), whole);
  EXPECT_FALSE(Split({{0, 1, 3}, {1, 1, 4}}, {2, 6}).has_value());
}

TEST_F(DigitsTest, AlignCutsWhereEitherEnds) {
  const auto pairs = Align({{0, 1, 12}}, {{5, 1, 3}, {6, 1, 4}});
  ASSERT_TRUE(pairs.has_value());
  ASSERT_EQ(pairs->size(), 2);
  EXPECT_EQ((*pairs)[0].first, (Digit{0, 1, 4}));
  EXPECT_EQ((*pairs)[0].second, (Digit{6, 1, 4}));
  EXPECT_EQ((*pairs)[1].first, (Digit{0, 4, 3}));
  EXPECT_FALSE(Align({{0, 1, 12}}, {{5, 1, 5}}).has_value());
}

TEST_F(DigitsTest, SubstituteFollowsPieces) {
  const std::vector<Digits> axes = {{{7, 1, 6}, {8, 1, 4}}};
  EXPECT_EQ(*Substitute({{0, 4, 6}}, axes), (Digits{{7, 1, 6}}));
  EXPECT_EQ(*Substitute({{0, 2, 12}}, axes), (Digits{{7, 1, 6}, {8, 2, 2}}));
}

TEST_F(DigitsTest, ReshapeJoinsAndCuts) {
  const ir::Node* reshape = Reshape(Input({6, 4}), {2, 12});
  const Access access = MoveThrough(reshape, Identity(reshape->shape()));
  EXPECT_EQ(*access.axes[0], (Digits{{0, 1, 2}, {1, 4, 3}}));
  EXPECT_EQ(*access.axes[1], (Digits{{1, 1, 4}}));
}

TEST_F(DigitsTest, ExpandedAxesAreZero) {
  const ir::Node* expand = Move(Op::kExpand, Input({1, 5}), {3, 5}, {});
  const Access access = MoveThrough(expand, Identity(expand->shape()));
  EXPECT_EQ(*access.axes[0], Digits{});
  EXPECT_EQ(*access.axes[1], (Digits{{1, 1, 5}}));
}

TEST_F(DigitsTest, PadsAreConditionalAndCutOneAxis) {
  const ir::Node* pad = Move(Op::kPad, Input({4, 5}), {6, 5}, {1, 1, 0, 0});
  const Access access = MoveThrough(pad, Identity(pad->shape()));
  EXPECT_TRUE(access.conditional);
  EXPECT_FALSE(access.axes[0].has_value());
  EXPECT_EQ(*access.axes[1], (Digits{{1, 1, 5}}));
}

// The condition is kept by a reshape that removes the padded dimension.
TEST_F(DigitsTest, ConditionsOutliveTheirDimension) {
  const ir::Node* pad = Move(Op::kPad, Reshape(Input({}), {1}), {3}, {1, 1});
  const Access access = MoveThrough(pad->operand(0), MoveThrough(pad, Identity(pad->shape())));
  EXPECT_TRUE(access.axes.empty());
  EXPECT_TRUE(access.conditional);
}

}  // namespace
}  // namespace kiln::partition
