#include "compiler/kernel/index.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/kernel/index_sum.h"
#include "compiler/kernel/text.h"
#include "gtest/gtest.h"

namespace kiln::kernel {
namespace {

using ir::Node;
using ir::Op;

std::string Text(const Node* node) { return node == nullptr ? "always" : PrintExpression(node); }

class IndexTest : public testing::Test {
 protected:
  const Node* Binary(Op op, const Node* a, const Node* b) {
    return context_.Get(op, ir::DType::kInt64, {}, {a, b});
  }
  ir::Context context_;
  IndexMath math_{context_};
};

TEST_F(IndexTest, DigitsOfASumAreItsTerms) {
  const Node* a = math_.Range(7);
  const Node* b = math_.Range(20);
  const Node* index = math_.Add(math_.Mul(a, 20), b);
  EXPECT_EQ(math_.Div(index, 20), a);
  EXPECT_EQ(math_.Mod(index, 20), b);
  EXPECT_EQ(Text(math_.Div(index, 10)), "r0*2 + r1//10");
  EXPECT_EQ(Text(math_.Mod(index, 10)), "r1%10");
}

TEST_F(IndexTest, DigitsOfARangeMakeItAgain) {
  const Node* a = math_.Range(240);
  const std::vector<const Node*> digits = math_.Unflatten(a, {4, 5, 12});
  EXPECT_EQ(Text(digits[1]), "r0//12%5");
  EXPECT_EQ(math_.Flatten(digits, {4, 5, 12}), a);
  const std::vector<const Node*> pair = {digits[1], digits[2]};
  EXPECT_EQ(Text(math_.Flatten(pair, {5, 12})), "r0%60");
}

TEST_F(IndexTest, PartsOfACommonFactorDivide) {
  const Node* a = math_.Range(4);
  const Node* b = math_.Range(3);
  const Node* index = math_.Add(math_.Mul(a, 3), b);  // below 12
  EXPECT_EQ(Text(math_.Div(index, 6)), "r0//2");
  EXPECT_EQ(Text(math_.Mod(index, 6)), "r0%2*3 + r1");
}

// Indices made of data have such shared operands; a walk along every path would not end.
TEST_F(IndexTest, SharedOperandsAreVisitedOnce) {
  const Node* doubled = math_.Range(4);
  const Node* digits = doubled;
  for (int64_t i = 0; i < 60; ++i) {
    doubled = Binary(Op::kAdd, doubled, doubled);
    digits = Binary(Op::kAdd, Binary(Op::kIDiv, digits, math_.Constant(5 + i)),
                    Binary(Op::kIDiv, digits, math_.Constant(7 + i)));
  }
  EXPECT_EQ(Text(math_.Simplify(doubled)), "r0*1152921504606846976");
  Validity where;
  math_.Require(where, math_.Simplify(digits), 0, 2);
  EXPECT_FALSE(where.never);
}

TEST_F(IndexTest, EqualSumsAreOneNode) {
  const Node* a = math_.Range(4);
  const Node* b = math_.Range(9);
  EXPECT_EQ(math_.Add(math_.Mul(a, 3), b), math_.Add(b, math_.Mul(a, 3)));
  EXPECT_EQ(math_.Sub(math_.Add(a, b), b), a);
}

TEST_F(IndexTest, ConditionsThatFollowVanish) {
  const Node* a = math_.Range(12);
  Validity validity;
  math_.Require(validity, a, 0, 12);
  EXPECT_TRUE(validity.always());
  math_.Require(validity, math_.Sub(a, math_.Constant(2)), 0, 20);
  EXPECT_EQ(Text(math_.ToNode(validity)), "cmplt(1, r0)");
  math_.Require(validity, math_.Div(a, 4), 0, 2);
  EXPECT_EQ(math_.BoundsOf(a, validity), (Interval{2, 7}));
  math_.Require(validity, a, 8, 12);
  EXPECT_TRUE(validity.never);
}

TEST_F(IndexTest, ConditionsBoundTheSumsTheyAreAbout) {
  const Node* a = math_.Range(10);
  const Node* b = math_.Range(3);
  Validity validity;
  math_.Require(validity, math_.Sub(a, b), 0, 8);
  const Node* index = math_.Add(math_.Mul(math_.Sub(a, b), 5), math_.Constant(3));
  EXPECT_EQ(math_.BoundsOf(index, {}), (Interval{-7, 48}));
  EXPECT_EQ(math_.BoundsOf(index, validity), (Interval{3, 38}));
  EXPECT_EQ(math_.ToValidity(math_.ToNode(validity)), validity);
}

// Evaluates an expression by the semantics of its ops.
int64_t Evaluate(const Node* node, const absl::flat_hash_map<const Node*, int64_t>& values) {
  if (node->op() == Op::kConst) return node->attr<ir::ConstValue>().AsInt();
  if (node->op() == Op::kRange || node->op() == Op::kLoad) return values.at(node);
  const int64_t a = Evaluate(node->operand(0), values);
  const int64_t b = Evaluate(node->operand(1), values);
  switch (node->op()) {
    case Op::kAdd:
      return WrappingAdd(a, b);
    case Op::kSub:
      return WrappingAdd(a, WrappingMul(b, -1));
    case Op::kMul:
      return WrappingMul(a, b);
    case Op::kIDiv:
      return FloorDiv(a, b);
    case Op::kMod:
      return WrappingAdd(a, WrappingMul(FloorDiv(a, b), -b));
    case Op::kCmpLt:
      return a < b;
    case Op::kCmpEq:
      return a == b;
    case Op::kAnd:
      return a & b;
    default:
      ADD_FAILURE() << "unexpected op";
      return 0;
  }
}

// The results of the index arithmetic for the last of some expressions, and for the one before it
// where low <= the last < high.
class Claims {
 public:
  Claims(IndexMath& math, const std::vector<const Node*>& expressions, int64_t low, int64_t high)
      : original_(expressions.back()),
        simple_(math.Simplify(original_)),
        bounds_(math.BoundsOf(simple_, {})),
        low_(low),
        high_(high) {
    Validity validity;
    math.Require(validity, simple_, low, high);
    condition_ = math.ToNode(validity);
    other_ = math.Simplify(expressions[expressions.size() - 2]);
    conditional_ = math.BoundsOf(other_, validity);
  }

  // Checks all results at this point.
  void Check(const absl::flat_hash_map<const Node*, int64_t>& values) const {
    const int64_t value = Evaluate(original_, values);
    ASSERT_EQ(Evaluate(simple_, values), value) << Text(original_) << " as " << Text(simple_);
    ASSERT_NO_FATAL_FAILURE(CheckWithin(bounds_, value, simple_));
    const bool holds = low_ <= value && value < high_;
    ASSERT_EQ(condition_ == nullptr || Evaluate(condition_, values) != 0, holds)
        << Text(simple_) << " in [" << low_ << ", " << high_ << ") as " << Text(condition_);
    if (holds) {
      ASSERT_NO_FATAL_FAILURE(CheckWithin(conditional_, Evaluate(other_, values), other_));
    }
  }

 private:
  static void CheckWithin(const Interval& bounds, int64_t value, const Node* node) {
    if (bounds.low > -kUnbounded) {
      ASSERT_GE(value, bounds.low) << Text(node);
    }
    if (bounds.high < kUnbounded) {
      ASSERT_LE(value, bounds.high) << Text(node);
    }
  }

  const Node* original_;
  const Node* simple_;
  const Interval bounds_;
  const int64_t low_;
  const int64_t high_;
  const Node* condition_ = nullptr;
  const Node* other_ = nullptr;
  Interval conditional_;
};

// Evaluates random expressions at every point: simplified ones have the same value and stay within
// their bounds.
TEST_F(IndexTest, SimplifiedExpressionsMeanTheSame) {
  std::mt19937 random(7);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int round = 0; round < 400; ++round) {
    const std::vector<const Node*> ranges = {math_.Range(pick(1, 6)), math_.Range(pick(1, 5)),
                                             math_.Range(pick(1, 8))};
    std::vector<const Node*> nodes = ranges;
    for (int step = 0; step < 8; ++step) {
      const Node* a = nodes[pick(0, static_cast<int64_t>(nodes.size()) - 1)];
      const Node* b = nodes[pick(0, static_cast<int64_t>(nodes.size()) - 1)];
      switch (pick(0, 4)) {
        case 0:
          nodes.push_back(Binary(Op::kAdd, a, b));
          break;
        case 1:
          nodes.push_back(Binary(Op::kSub, a, b));
          break;
        case 2:
          nodes.push_back(Binary(Op::kMul, a, math_.Constant(pick(-4, 12))));
          break;
        case 3:
          nodes.push_back(Binary(Op::kIDiv, a, math_.Constant(pick(1, 12))));
          break;
        default:
          nodes.push_back(Binary(Op::kMod, a, math_.Constant(pick(1, 12))));
          break;
      }
    }
    const int64_t low = pick(-6, 6);
    const Claims claims(math_, nodes, low, low + pick(1, 12));
    auto extent = [&](int i) { return ranges[i]->attr<ir::RangeAttr>().extent; };
    for (int64_t point = 0; point < extent(0) * extent(1) * extent(2); ++point) {
      const absl::flat_hash_map<const Node*, int64_t> values = {
          {ranges[0], point / (extent(1) * extent(2))},
          {ranges[1], point / extent(2) % extent(1)},
          {ranges[2], point % extent(2)}};
      ASSERT_NO_FATAL_FAILURE(claims.Check(values));
    }
  }
}

// Data may hold any number and be multiplied by any number: sums wrap, as in the kernels.
TEST_F(IndexTest, SumsThatWrapMeanTheSame) {
  std::mt19937_64 random(11);
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  auto wild = [&]() -> int64_t {
    constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
    constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
    const int64_t numbers[] = {kMin, kMin + 1, kMax, kMax - 1, int64_t{1} << 62, -1, 0, kUnbounded};
    if (pick(0, 3) == 0) return static_cast<int64_t>(random() & kMax);
    return pick(0, 1) == 0 ? numbers[pick(0, 7)] : pick(-12, 12);
  };
  auto divisor = [&] { return std::max<int64_t>(wild() & INT64_MAX, 1); };
  for (int round = 0; round < 4000; ++round) {
    std::vector<const Node*> atoms = {math_.Range(pick(1, 6))};
    for (int64_t buffer = 0; buffer < 2; ++buffer) {
      atoms.push_back(
          context_.Get(Op::kLoad, ir::DType::kInt64, {}, {atoms[0]}, ir::IntAttr{buffer}));
    }
    std::vector<const Node*> nodes = atoms;
    for (int step = 0; step < 6; ++step) {
      const Node* a = nodes[pick(0, static_cast<int64_t>(nodes.size()) - 1)];
      const Node* b = pick(0, 3) == 0 ? math_.Constant(wild())
                                      : nodes[pick(0, static_cast<int64_t>(nodes.size()) - 1)];
      const int64_t kind = pick(0, 4);
      nodes.push_back(kind == 0   ? Binary(Op::kAdd, a, b)
                      : kind == 1 ? Binary(Op::kSub, a, b)
                      : kind == 2 ? Binary(Op::kMul, a, math_.Constant(wild()))
                      : kind == 3 ? Binary(Op::kIDiv, a, math_.Constant(divisor()))
                                  : Binary(Op::kMod, a, math_.Constant(divisor())));
    }
    const int64_t low = pick(-6, 6);
    const Claims claims(math_, nodes, low, low + pick(1, 1000));
    for (int sample = 0; sample < 8; ++sample) {
      absl::flat_hash_map<const Node*, int64_t> values;
      values[atoms[0]] = pick(0, atoms[0]->attr<ir::RangeAttr>().extent - 1);
      values[atoms[1]] = wild();
      values[atoms[2]] = wild();
      ASSERT_NO_FATAL_FAILURE(claims.Check(values));
    }
  }
}

}  // namespace
}  // namespace kiln::kernel
