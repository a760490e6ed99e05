#include "compiler/ir/node.h"

#include <cmath>
#include <limits>
#include <set>

#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

const Node* Input(Context& context, int64_t index) {
  return context.Get(Op::kInput, DType::kFloat32, {4, 8}, {}, InputAttr{index});
}

TEST(ContextTest, EqualPartsAreOneNode) {
  Context context;
  const Node* a = Input(context, 0);
  const Node* b = Input(context, 1);
  EXPECT_NE(a, b);
  EXPECT_EQ(a, Input(context, 0));
  const Node* sum = context.Get(Op::kAdd, DType::kFloat32, {4, 8}, {a, b});
  EXPECT_EQ(sum, context.Get(Op::kAdd, DType::kFloat32, {4, 8}, {a, b}));
  EXPECT_NE(sum, context.Get(Op::kAdd, DType::kFloat32, {4, 8}, {b, a}));
  EXPECT_NE(sum, context.Get(Op::kMul, DType::kFloat32, {4, 8}, {a, b}));
  EXPECT_NE(sum, context.Get(Op::kAdd, DType::kFloat64, {4, 8}, {a, b}));
  EXPECT_NE(sum, context.Get(Op::kAdd, DType::kFloat32, {8, 4}, {a, b}));
}

TEST(ContextTest, AttributesOfDifferentKindsDiffer) {
  Context context;
  std::set<const Node*> nodes;
  for (Attribute attribute :
       {Attribute(), Attribute(ConstValue::Int(3)), Attribute(InputAttr{3}), Attribute(IntAttr{3}),
        Attribute(IntsAttr{{3}}), Attribute(RangeAttr{3, 0}), Attribute(ReduceAttr{})}) {
    nodes.insert(context.Get(Op::kConst, DType::kInt32, {}, {}, attribute));
  }
  EXPECT_EQ(nodes.size(), 7u);
  EXPECT_EQ(context.size(), 7u);
}

TEST(ContextTest, OperandsHaveSmallerIds) {
  Context context;
  const Node* node = Input(context, 0);
  for (int i = 0; i < 20000; ++i) {
    const Node* next = context.Get(Op::kNeg, DType::kFloat32, {4, 8}, {node});
    ASSERT_GT(next->id(), node->id());
    node = next;
  }
  EXPECT_EQ(context.size(), 20001u);
}

TEST(ContextTest, WithOperandsKeepsTheRest) {
  Context context;
  const Node* node =
      context.Get(Op::kPermute, DType::kFloat32, {8, 4}, {Input(context, 0)}, IntsAttr{{1, 0}});
  const Node* other = context.WithOperands(node, {Input(context, 1)});
  EXPECT_NE(other, node);
  EXPECT_EQ(other->attr<IntsAttr>().values, node->attr<IntsAttr>().values);
  EXPECT_EQ(other->shape(), node->shape());
  EXPECT_EQ(context.WithOperands(other, {Input(context, 0)}), node);
}

TEST(ConstValueTest, KeepsBits) {
  EXPECT_EQ(ConstValue::Int(-7).AsInt(), -7);
  EXPECT_EQ(ConstValue::Float(0.1).AsDouble(), 0.1);
  EXPECT_NE(ConstValue::Float(0.0), ConstValue::Float(-0.0));
  EXPECT_EQ(ConstValue::Float(NAN), ConstValue::Float(NAN));
}

TEST(OpTest, NamesAreDistinct) {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumOps; ++i) names.insert(Name(static_cast<Op>(i)));
  EXPECT_EQ(names.size(), static_cast<size_t>(kNumOps));
  EXPECT_EQ(Name(Op::kConst), "const");
  EXPECT_EQ(Name(Op::kShr), "shr");
  EXPECT_EQ(Name(Op::kReduceSum), "reduce_sum");
  EXPECT_EQ(Name(Op::kUnwindow), "unwindow");
  EXPECT_EQ(Name(Op::kScatterElements), "scatter_elements");
  EXPECT_EQ(Name(Op::kMutable), "mutable");
  EXPECT_EQ(Name(Op::kReduce), "reduce");
}

TEST(DTypeTest, NamesParseBack) {
  for (const DType dtype : kAllDTypes) {
    EXPECT_EQ(ParseDType(Name(dtype)), dtype);
    EXPECT_GT(SizeOf(dtype), 0);
  }
  EXPECT_EQ(ParseDType("invalid"), std::nullopt);
  EXPECT_EQ(ParseDType("float31"), std::nullopt);
}

TEST(DTypeTest, Classes) {
  EXPECT_FALSE(IsInteger(DType::kBool));
  EXPECT_FALSE(IsFloat(DType::kBool));
  EXPECT_TRUE(IsSigned(DType::kInt8));
  EXPECT_FALSE(IsSigned(DType::kUInt64));
  EXPECT_TRUE(IsFloat(DType::kBFloat16));
  EXPECT_EQ(SizeOf(DType::kFloat64), 8);
  EXPECT_EQ(SizeOf(static_cast<DType>(99)), 0);
}

// (Micikevicius et al., 2022) and IEEE 754.
TEST(DTypeTest, FloatFormats) {
  struct Expected {
    DType dtype;
    double largest;
    int exponent_min;
    uint32_t largest_bits, beyond_bits, nan_bits;
  };
  constexpr Expected kExpected[] = {
      {DType::kFloat8E4M3, 448, -6, 0x7e, 0x7f, 0x7f},
      {DType::kFloat8E5M2, 57344, -14, 0x7b, 0x7c, 0x7e},
      {DType::kFloat16, 65504, -14, 0x7bff, 0x7c00, 0x7e00},
      {DType::kBFloat16, 0x1.FEp127, -126, 0x7f7f, 0x7f80, 0x7fc0},
      {DType::kFloat32, std::numeric_limits<float>::max(), -126, 0x7f7fffff, 0x7f800000,
       0x7fc00000},
  };
  for (const Expected& expected : kExpected) {
    const FloatFormat& format = FormatOf(expected.dtype);
    EXPECT_EQ(format.largest(), expected.largest) << Name(expected.dtype);
    EXPECT_EQ(format.exponent_min(), expected.exponent_min) << Name(expected.dtype);
    EXPECT_EQ(format.largest_bits(), expected.largest_bits) << Name(expected.dtype);
    EXPECT_EQ(format.beyond_bits(), expected.beyond_bits) << Name(expected.dtype);
    EXPECT_EQ(format.nan_bits(), expected.nan_bits) << Name(expected.dtype);
  }
  EXPECT_EQ(FormatOf(DType::kFloat64).largest(), std::numeric_limits<double>::max());
}

TEST(ShapeTest, NumElements) {
  EXPECT_EQ(NumElements({}), 1);
  EXPECT_EQ(NumElements(Shape{4, 8}), 32);
  EXPECT_EQ(NumElements(Shape{4, 0, 8}), 0);
}

}  // namespace
}  // namespace kiln::ir
