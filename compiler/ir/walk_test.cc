#include "compiler/ir/walk.h"

#include "compiler/ir/testing/substitute.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

using ::testing::ElementsAre;

const Node* IntegerInput(Context& context, int64_t index) {
  return context.Get(Op::kInput, DType::kInt32, {}, {}, InputAttr{index});
}
const Node* Sum(Context& context, const Node* a, const Node* b) {
  return context.Get(Op::kAdd, DType::kInt32, {}, {a, b});
}

TEST(WalkTest, OrderFollowsRootsNotCreation) {
  Context context;
  const Node* b = IntegerInput(context, 1);
  const Node* a = IntegerInput(context, 0);
  const Node* sum = Sum(context, a, b);
  const Node* twice = Sum(context, sum, sum);
  std::vector<const Node*> roots = {sum, nullptr, twice};
  EXPECT_THAT(TopologicalOrder(roots), ElementsAre(a, b, sum, twice));
}

TEST(WalkTest, SubstituteReplacesOnceAndSharesTheRest) {
  Context context;
  const Node* a = IntegerInput(context, 0);
  const Node* b = IntegerInput(context, 1);
  const Node* sum = Sum(context, a, b);
  EXPECT_EQ(Substitute(context, sum, {{a, b}, {b, a}}), Sum(context, b, a));
  EXPECT_EQ(Substitute(context, sum, {{IntegerInput(context, 2), a}}), sum);
  EXPECT_EQ(Substitute(context, sum, {{sum, a}}), a);
}

TEST(WalkTest, LongChains) {
  Context context;
  const Node* first = IntegerInput(context, 0);
  const Node* node = first;
  for (int i = 0; i < 300000; ++i) node = Sum(context, node, first);
  EXPECT_EQ(TopologicalOrder({node}).size(), 300001u);
  const Node* moved = Substitute(context, node, {{first, IntegerInput(context, 1)}});
  EXPECT_EQ(TopologicalOrder({moved}).front(), IntegerInput(context, 1));
}

}  // namespace
}  // namespace kiln::ir
