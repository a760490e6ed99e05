#include "compiler/ir/rewrite.h"

#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

const Node* Int(Context& context, int64_t value) {
  return context.Get(Op::kConst, DType::kInt64, {}, {}, ConstValue::Int(value));
}
const Node* Range(Context& context, int64_t id) {
  return context.Get(Op::kRange, DType::kInt64, {}, {}, RangeAttr{id, 16});
}
const Node* Add(Context& context, const Node* a, const Node* b) {
  return context.Get(Op::kAdd, DType::kInt64, {}, {a, b});
}
const Node* Neg(Context& context, const Node* a) {
  return context.Get(Op::kNeg, DType::kInt64, {}, {a});
}

const Node* FoldAdd(Context& context, const Node* node) {
  const Node *a = node->operand(0), *b = node->operand(1);
  if (a->op() != Op::kConst || b->op() != Op::kConst) return nullptr;
  return Int(context, a->attr<ConstValue>().AsInt() + b->attr<ConstValue>().AsInt());
}
const Node* DropDoubleNeg(Context&, const Node* node) {
  return node->operand(0)->op() == Op::kNeg ? node->operand(0)->operand(0) : nullptr;
}
// (x + c) + d = x + (c + d): the result contains a new node that itself needs rewriting.
const Node* Reassociate(Context& context, const Node* node) {
  const Node* left = node->operand(0);
  if (left->op() != Op::kAdd || left->operand(1)->op() != Op::kConst) return nullptr;
  if (node->operand(1)->op() != Op::kConst) return nullptr;
  return Add(context, left->operand(0), Add(context, left->operand(1), node->operand(1)));
}
const Node* Swap(Context& context, const Node* node) {
  return Add(context, node->operand(1), node->operand(0));
}
const Node* Wrap(Context& context, const Node* node) {
  return Add(context, node, Range(context, 9));
}

const std::vector<Rule>& Rules() {
  static const auto& rules = *new std::vector<Rule>{{"fold_add", {Op::kAdd}, FoldAdd},
                                                    {"double_neg", {Op::kNeg}, DropDoubleNeg},
                                                    {"reassociate", {Op::kAdd}, Reassociate}};
  return rules;
}

TEST(RewriteTest, FoldsBottomUp) {
  Context context;
  const Node* one = Int(context, 1);
  const Node* node = Add(context, Neg(context, Neg(context, one)), Add(context, one, one));
  Rewriter rewriter(context, Rules());
  EXPECT_EQ(rewriter.Rewrite(node), Int(context, 3));
  EXPECT_EQ(rewriter.report().applied.at("fold_add"), 2);
  EXPECT_EQ(rewriter.report().applied.at("double_neg"), 1);
  EXPECT_FALSE(rewriter.report().cyclic);
}

TEST(RewriteTest, ResultsOfRulesReachTheFixedPointToo) {
  Context context;
  const Node* node = Range(context, 0);
  for (int i = 1; i <= 100; ++i) node = Add(context, node, Int(context, i));
  Rewriter rewriter(context, Rules());
  EXPECT_EQ(rewriter.Rewrite(node), Add(context, Range(context, 0), Int(context, 5050)));
  EXPECT_EQ(rewriter.report().applied.at("reassociate"), 99);
}

TEST(RewriteTest, KeepsWhatNoRuleMatches) {
  Context context;
  const Node* node = Neg(context, Add(context, Range(context, 0), Range(context, 1)));
  Rewriter rewriter(context, Rules());
  EXPECT_EQ(rewriter.Rewrite(node), node);
  EXPECT_EQ(rewriter.Rewrite(nullptr), nullptr);
  EXPECT_TRUE(rewriter.report().applied.empty());
}

TEST(RewriteTest, RulesThatUndoEachOtherEnd) {
  Context context;
  std::vector<Rule> rules = {{"swap", {Op::kAdd}, Swap}};
  const Node* node = Add(context, Range(context, 0), Range(context, 1));
  Rewriter rewriter(context, rules);
  const Node* result = rewriter.Rewrite(node);
  EXPECT_TRUE(result == node || result == Swap(context, node));
  EXPECT_TRUE(rewriter.report().cyclic);
}

TEST(RewriteTest, RulesThatWrapTheirOwnMatchEnd) {
  Context context;
  std::vector<Rule> rules = {{"wrap", {Op::kNeg}, Wrap}};
  const Node* node = Neg(context, Range(context, 0));
  Rewriter rewriter(context, rules);
  EXPECT_EQ(rewriter.Rewrite(node), Wrap(context, node));
  EXPECT_TRUE(rewriter.report().cyclic);
}

// A diamond of depth n has 2^n paths and n nodes; a queued operand must not look like one in
// progress.
TEST(RewriteTest, LinearInNodesOfADiamond) {
  Context context;
  const Node* node = Neg(context, Neg(context, Range(context, 0)));
  const Node* expected = Range(context, 0);
  for (int i = 0; i < 2000; ++i) {
    node = Add(context, Neg(context, node), node);
    expected = Add(context, Neg(context, expected), expected);
  }
  Rewriter rewriter(context, Rules());
  EXPECT_EQ(rewriter.Rewrite(node), expected);
  EXPECT_FALSE(rewriter.report().cyclic);
  EXPECT_EQ(rewriter.report().applied.at("double_neg"), 1);
}

TEST(RewriteTest, LongChainsNeedNoDeepStack) {
  Context context;
  const Node* node = Range(context, 0);
  for (int i = 0; i < 200000; ++i) node = Neg(context, node);
  EXPECT_EQ(Rewriter(context, Rules()).Rewrite(node), Range(context, 0));
  for (int i = 0; i < 200000; ++i) node = Add(context, node, Range(context, i));
  EXPECT_EQ(Rewriter(context, Rules()).Rewrite(node)->op(), Op::kAdd);
}

}  // namespace
}  // namespace kiln::ir
