// Tests sums, their bounds, and folding.
#include "compiler/kernel/index_sum.h"

#include <gtest/gtest.h>

#include "compiler/kernel/expression_folder.h"
#include "compiler/kernel/index_bounds.h"

namespace kiln::kernel {
namespace {

class IndexSumTest : public testing::Test {
 protected:
  ir::Context context_;
  ExpressionFolder folder_{context_};
};

TEST_F(IndexSumTest, SumsAreTakenApart) {
  const ir::Node* r = folder_.Range(0, 10);
  const ir::Node* s = folder_.Range(1, 5);
  const ir::Node* sum = folder_.Add(folder_.Mul(folder_.Add(r, folder_.Int(3)), 4), s);
  const Sum linear = SumOf(folder_.Add(sum, folder_.Mul(r, -4)));
  EXPECT_EQ(linear.constant, 12);
  EXPECT_EQ(linear.Coefficient(r), 0);
  EXPECT_EQ(linear.Coefficient(s), 1);
  EXPECT_EQ(BoundsOf(sum).low, 12);
  EXPECT_EQ(BoundsOf(sum).high, 52);
}

TEST_F(IndexSumTest, ConstantsFold) {
  const auto folded = [&](ir::Op op, int64_t a, int64_t b) {
    const ir::Node* r = folder_.Range(0, 100);
    const bool compares = op == ir::Op::kCmpLt || op == ir::Op::kCmpEq || op == ir::Op::kCmpNe;
    const ir::DType dtype = compares ? ir::DType::kBool : ir::DType::kInt64;
    ExpressionFolder::Map memo = {{r, folder_.Int(a)}};
    const ir::Node* node = context_.Get(op, dtype, {}, {r, folder_.Int(b)});
    int64_t value = 12345;
    return IsConstant(folder_.Substitute(node, &memo), &value) ? value : -999;
  };
  EXPECT_EQ(folded(ir::Op::kAdd, 7, 3), 10);
  EXPECT_EQ(folded(ir::Op::kSub, 7, 9), -2);
  EXPECT_EQ(folded(ir::Op::kMul, 7, -3), -21);
  EXPECT_EQ(folded(ir::Op::kMin, 7, 3), 3);
  EXPECT_EQ(folded(ir::Op::kMax, 7, 3), 7);
  EXPECT_EQ(folded(ir::Op::kCmpLt, 7, 3), 0);
  EXPECT_EQ(folded(ir::Op::kCmpEq, 7, 7), 1);
  EXPECT_EQ(folded(ir::Op::kCmpNe, 7, 7), 0);
  EXPECT_EQ(folded(ir::Op::kIDiv, -7, 3), -3);
  EXPECT_EQ(folded(ir::Op::kMod, -7, 3), 2);
  // Division by zero and by negative numbers is not folded, nor are ops that are not index
  // arithmetic.
  EXPECT_EQ(folded(ir::Op::kIDiv, 7, 0), -999);
  EXPECT_EQ(folded(ir::Op::kMod, 7, -2), -999);
  EXPECT_EQ(folded(ir::Op::kXor, 7, 3), -999);
}

TEST_F(IndexSumTest, WhatChangesNothingVanishes) {
  const ir::Node* r = folder_.Range(0, 100);
  const ir::Node* s = folder_.Range(1, 100);
  const auto put = [&](ir::Op op, bool left, int64_t number) {
    ExpressionFolder::Map memo = {{s, folder_.Int(number)}};
    const ir::Node* node = left ? context_.Get(op, ir::DType::kInt64, {}, {s, r})
                                : context_.Get(op, ir::DType::kInt64, {}, {r, s});
    return folder_.Substitute(node, &memo);
  };
  for (ir::Op op : {ir::Op::kAdd, ir::Op::kSub, ir::Op::kShl, ir::Op::kShr}) {
    EXPECT_EQ(put(op, false, 0), r);
    EXPECT_NE(put(op, false, 2), r);
  }
  EXPECT_EQ(put(ir::Op::kAdd, true, 0), r);
  for (bool left : {false, true}) {
    EXPECT_EQ(put(ir::Op::kMul, left, 1), r);
    EXPECT_EQ(put(ir::Op::kMul, left, 0), folder_.Int(0));
    EXPECT_NE(put(ir::Op::kMul, left, 2), r);
  }
  EXPECT_EQ(put(ir::Op::kIDiv, false, 1), r);
  EXPECT_EQ(put(ir::Op::kMod, false, 1), folder_.Int(0));
  EXPECT_EQ(folder_.Mul(r, 0), folder_.Int(0));
  EXPECT_EQ(folder_.Where(folder_.Less(r, s), s, s), s);
  EXPECT_EQ(folder_.Where(folder_.Bool(true), r, s), r);
  EXPECT_EQ(folder_.Where(folder_.Bool(false), r, s), s);
  EXPECT_NE(folder_.Equal(r, folder_.Int(3)), folder_.Bool(false));
  EXPECT_EQ(folder_.Equal(folder_.Int(3), folder_.Int(4)), folder_.Bool(false));
  EXPECT_NE(folder_.Equal(folder_.Int(3), r), folder_.Bool(false));
  const ir::Node* less = folder_.Less(r, s);
  EXPECT_EQ(folder_.And(less, less), less);
}

TEST_F(IndexSumTest, FloatsAreNoConstantsOfIndices) {
  int64_t value = 0;
  EXPECT_FALSE(IsConstant(
      context_.Get(ir::Op::kConst, ir::DType::kFloat32, {}, {}, ir::ConstValue::Float(3)), &value));
}

// The bounds of a loaded number are unknown, but dividing it by one gives the number itself.
TEST_F(IndexSumTest, WhatWasReadIsDividedByOne) {
  const ir::Node* read = folder_.Load(ir::DType::kInt64, 0, folder_.Range(0, 10), nullptr);
  const ir::Node* s = folder_.Range(1, 5);
  ExpressionFolder::Map memo = {{s, folder_.Int(1)}};
  EXPECT_EQ(
      folder_.Substitute(context_.Get(ir::Op::kIDiv, ir::DType::kInt64, {}, {read, s}), &memo),
      read);
}

TEST_F(IndexSumTest, NegativeAndUnknownPartsOfSums) {
  const ir::Node* r = folder_.Range(0, 10);
  const ir::Node* s = folder_.Range(1, 5);
  const auto get = [&](ir::Op op, std::vector<const ir::Node*> operands) {
    return context_.Get(op, ir::DType::kInt64, {}, std::move(operands));
  };
  EXPECT_EQ(SumOf(get(ir::Op::kNeg, {get(ir::Op::kSub, {r, s})})).Coefficient(r), -1);
  const ir::Node* product = get(ir::Op::kMul, {r, s});
  EXPECT_EQ(SumOf(product).Coefficient(product), 1);
  // The bounds of a quotient or remainder are unknown unless the divisor is a positive constant.
  EXPECT_FALSE(IsKnown(BoundsOf(get(ir::Op::kIDiv, {r, s}))));
  EXPECT_FALSE(IsKnown(BoundsOf(get(ir::Op::kMod, {r, folder_.Int(-3)}))));
}

TEST_F(IndexSumTest, BoundsOfQuotientsAndRemainders) {
  const ir::Node* r = folder_.Range(0, 10);
  const auto get = [&](ir::Op op, const ir::Node* dividend) {
    return BoundsOf(context_.Get(op, ir::DType::kInt64, {}, {dividend, folder_.Int(3)}));
  };
  EXPECT_EQ(get(ir::Op::kIDiv, r), (Interval{0, 3}));
  EXPECT_EQ(get(ir::Op::kMod, r), (Interval{0, 2}));
  EXPECT_EQ(get(ir::Op::kMod, folder_.Range(1, 2)), (Interval{0, 1}));
  // A negative dividend.
  const ir::Node* below = folder_.Add(r, folder_.Int(-4));
  EXPECT_EQ(get(ir::Op::kIDiv, below), (Interval{-2, 1}));
  EXPECT_EQ(get(ir::Op::kMod, below), (Interval{0, 2}));
}

TEST_F(IndexSumTest, SharedSumsDoNotExplode) {
  const ir::Node* sum = folder_.Range(0, 2);
  for (int i = 0; i < 100; ++i) sum = folder_.Add(sum, sum);
  EXPECT_LE(SumOf(sum).terms.size(), 600);
}

// Every level reads the level below it twice, so there are 2^60 paths to the range.
TEST_F(IndexSumTest, BoundsOfSharedAtomsAskEachOnce) {
  const ir::Node* x = folder_.Range(0, 100);
  const auto mod = [&](const ir::Node* node, int64_t divisor) {
    return context_.Get(ir::Op::kMod, ir::DType::kInt64, {}, {node, folder_.Int(divisor)});
  };
  for (int i = 0; i < 60; ++i) x = folder_.Add(mod(x, 7), mod(x, 5));
  EXPECT_EQ(BoundsOf(x).low, 0);
  EXPECT_EQ(BoundsOf(x).high, 10);
}

TEST_F(IndexSumTest, SumsThatCouldWrapHaveNoBounds) {
  const ir::Node* r = folder_.Range(0, 8);
  EXPECT_FALSE(IsKnown(BoundsOf(folder_.Mul(r, INT64_MAX / 4))));
  const ir::Node* s = folder_.Range(1, 8);
  for (const int64_t factor : {kUnbounded / 8, -kUnbounded / 8}) {
    EXPECT_TRUE(IsKnown(BoundsOf(folder_.Mul(r, factor))));
    EXPECT_FALSE(IsKnown(BoundsOf(folder_.Add(folder_.Mul(r, factor), folder_.Mul(s, factor)))));
  }
}

TEST_F(IndexSumTest, DivisionsByConstantsSplit) {
  const ir::Node* r = folder_.Range(0, 10);
  const ir::Node* s = folder_.Range(1, 4);
  const ir::Node* sum = folder_.Add(folder_.Mul(r, 4), s);
  const ir::Node* quotient =
      context_.Get(ir::Op::kIDiv, ir::DType::kInt64, {}, {sum, folder_.Int(4)});
  const ir::Node* rest = context_.Get(ir::Op::kMod, ir::DType::kInt64, {}, {sum, folder_.Int(4)});
  const ir::Node* t = folder_.Range(2, 4);
  ExpressionFolder::Map memo = {{s, t}};
  EXPECT_EQ(folder_.Substitute(quotient, &memo), r);
  EXPECT_EQ(folder_.Substitute(rest, &memo), t);
  // The rest may be negative.
  const ir::Node* minus = folder_.Mul(t, -1);
  memo = {{s, minus}};
  EXPECT_EQ(
      folder_.Substitute(quotient, &memo),
      folder_.Add(r, context_.Get(ir::Op::kIDiv, ir::DType::kInt64, {}, {minus, folder_.Int(4)})));
}

// A loop of 8 lanes within a loop of vectors, as the digits of reshapes see it.
TEST_F(IndexSumTest, LanesLeaveDivisionsByMultiplesOfTheirNumber) {
  const ir::Node* whole = folder_.Range(0, 256);
  const ir::Node* vector = folder_.Range(1, 32);
  const ir::Node* lane = folder_.Range(2, 8);
  const auto get = [&](ir::Op op, const ir::Node* dividend, int64_t divisor) {
    return context_.Get(op, ir::DType::kInt64, {}, {dividend, folder_.Int(divisor)});
  };
  const ir::Node* split = folder_.Add(folder_.Mul(vector, 8), lane);
  ExpressionFolder::Map memo = {{whole, split}};
  const auto folded = [&](const ir::Node* index) { return folder_.Substitute(index, &memo); };
  EXPECT_EQ(folded(get(ir::Op::kIDiv, whole, 16)), get(ir::Op::kIDiv, vector, 2));
  EXPECT_EQ(folded(get(ir::Op::kMod, whole, 16)),
            folder_.Add(folder_.Mul(get(ir::Op::kMod, vector, 2), 8), lane));
  EXPECT_EQ(folded(get(ir::Op::kMod, get(ir::Op::kIDiv, whole, 16), 2)),
            get(ir::Op::kMod, get(ir::Op::kIDiv, vector, 2), 2));
  // Multiples of 4 of the lanes' number do not keep lanes together in blocks of 12.
  EXPECT_NE(folded(get(ir::Op::kIDiv, whole, 12)), get(ir::Op::kIDiv, vector, 3));
  // Whatever is split off, no value changes.
  for (const int64_t divisor : {2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 48, 100}) {
    for (const int64_t shift : {0, 1, 8, 12, -16}) {
      const ir::Node* moved = folder_.Add(folder_.Mul(whole, 3), folder_.Int(shift));
      for (const ir::Op op : {ir::Op::kIDiv, ir::Op::kMod}) {
        const ir::Node* index = folded(get(op, moved, divisor));
        for (int64_t i = 0; i < 256; ++i) {
          ExpressionFolder::Map point = {{vector, folder_.Int(i / 8)}, {lane, folder_.Int(i % 8)}};
          const int64_t quotient = FloorDiv(3 * i + shift, divisor);
          int64_t value = -1;
          ASSERT_TRUE(IsConstant(folder_.Substitute(index, &point), &value));
          ASSERT_EQ(value, op == ir::Op::kIDiv ? quotient : 3 * i + shift - quotient * divisor);
        }
      }
    }
  }
}

}  // namespace
}  // namespace kiln::kernel
