#include "compiler/ir/spec.h"

#include "compiler/ir/text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::ir {
namespace {

using ::testing::HasSubstr;

// A node of `op` over inputs of the given types, and whether it is legal at the tensor level.
struct Case {
  Op op;
  std::string type;
  std::vector<std::string> operands;
  Attribute attribute;
  bool legal;
};

const Node* Make(Context& context, const Case& c) {
  std::vector<const Node*> operands;
  for (const std::string& text : c.operands) {
    Type type = *ParseType(text);
    operands.push_back(context.Get(Op::kInput, type.dtype, type.shape, {},
                                   InputAttr{static_cast<int64_t>(operands.size())}));
  }
  Type type = *ParseType(c.type);
  return context.Get(c.op, type.dtype, type.shape, operands, c.attribute);
}

IntsAttr Ints(std::vector<int64_t> values) { return {std::move(values)}; }

TEST(SpecTest, TensorLaws) {
  const std::vector<Case> cases = {
      {Op::kAdd, "float32[2]", {"float32[2]", "float32[2]"}, {}, true},
      {Op::kAdd, "float32[2]", {"float32[2]", "float32[1]"}, {}, false},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({2, 0, 2, 1, 1}), true},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({0, 0}), true},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({1, 0, 1, 0}), false},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({1, 0}), false},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({0, 0, 0}), false},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({0, 2, 1}), false},
      {Op::kShard, "float32[4,6]", {"float32[4,6]"}, Ints({1, -1, 0}), false},
      {Op::kSend, "float32[4,6]", {"float32[4,6]"}, Ints({0, 1}), true},
      {Op::kSend, "float32[4,6]", {"float32[6,4]"}, Ints({0, 1}), false},
      {Op::kSend, "float32[4,6]", {"float32[4,6]"}, Ints({0, -1}), false},
      {Op::kSend, "float32[4,6]", {"float32[4,6]"}, Ints({0}), false},
      {Op::kAdd, "float32[2]", {"float32[2]", "float64[2]"}, {}, false},
      {Op::kAdd, "bool[2]", {"bool[2]", "bool[2]"}, {}, false},
      {Op::kMax, "bool[2]", {"bool[2]", "bool[2]"}, {}, true},
      {Op::kDiv, "int32", {"int32", "int32"}, {}, false},
      {Op::kCmpLt, "bool[2]", {"int8[2]", "int8[2]"}, {}, true},
      {Op::kCmpLt, "int8[2]", {"int8[2]", "int8[2]"}, {}, false},
      {Op::kAnd, "float32", {"float32", "float32"}, {}, false},
      {Op::kWhere, "int8[2]", {"bool[2]", "int8[2]", "int8[2]"}, {}, true},
      {Op::kWhere, "int8[2]", {"int8[2]", "int8[2]", "int8[2]"}, {}, false},
      {Op::kCast, "float64[2]", {"int8[2]"}, {}, true},
      {Op::kBitcast, "float32[2]", {"int32[2]"}, {}, true},
      {Op::kBitcast, "float32[2]", {"int64[2]"}, {}, false},
      {Op::kBitcast, "bool[2]", {"int8[2]"}, {}, false},
      {Op::kReduceSum, "float32[1,3]", {"float32[2,3]"}, Ints({0}), true},
      {Op::kReduceSum, "float32[3]", {"float32[2,3]"}, Ints({0}), false},
      {Op::kReduceSum, "float32[1,3]", {"float32[2,3]"}, Ints({0, 0}), false},
      {Op::kReduceSum, "float32[1,3]", {"float32[2,3]"}, Ints({2}), false},
      {Op::kReduceSum, "float32[1,3]", {"float32[2,3]"}, {}, false},
      {Op::kReshape, "float32[6]", {"float32[2,3]"}, {}, true},
      {Op::kReshape, "float32[7]", {"float32[2,3]"}, {}, false},
      {Op::kReshape, "float32[0,9]", {"float32[2,0]"}, {}, true},
      {Op::kExpand, "float32[4,3]", {"float32[1,3]"}, {}, true},
      {Op::kExpand, "float32[0,3]", {"float32[1,3]"}, {}, true},
      {Op::kExpand, "float32[4,6]", {"float32[1,3]"}, {}, false},
      {Op::kExpand, "float32[4,3]", {"float32[3]"}, {}, false},
      {Op::kPad, "float32[6]", {"float32[3]"}, Ints({1, 2}), true},
      {Op::kPad, "float32[6]", {"float32[3]"}, Ints({-1, 4}), false},
      {Op::kPad, "float32[6]", {"float32[3]"}, Ints({INT64_MAX, INT64_MAX}), false},
      {Op::kShrink, "float32[2]", {"float32[3]"}, Ints({1, 3}), true},
      {Op::kShrink, "float32[3]", {"float32[3]"}, Ints({1, 4}), false},
      {Op::kShrink, "float32[0]", {"float32[3]"}, Ints({2, 1}), false},
      {Op::kFlip, "float32[3]", {"float32[3]"}, Ints({0}), true},
      {Op::kFlip, "float32[3]", {"float32[3]"}, Ints({-1}), false},
      {Op::kWindow, "float32[2,3,3]", {"float32[2,7]"}, Ints({1, 3, 2, 1}), true},
      {Op::kWindow, "float32[2,4,3]", {"float32[2,7]"}, Ints({1, 3, 2, 1}), false},
      {Op::kWindow, "float32[2,1,3]", {"float32[2,7]"}, Ints({1, 3, 2, 3}), true},
      {Op::kWindow, "float32[2,1,9]", {"float32[2,7]"}, Ints({1, 9, 1, 1}), false},
      {Op::kWindow, "float32[2,1,3]", {"float32[2,7]"}, Ints({1, 3, 0, 1}), false},
      {Op::kUnwindow, "float32[2,7,3]", {"float32[2,3,3]"}, Ints({1, 7, 2, 1}), true},
      {Op::kUnwindow, "float32[2,8,3]", {"float32[2,3,3]"}, Ints({1, 8, 2, 1}), true},
      {Op::kUnwindow, "float32[2,9,3]", {"float32[2,3,3]"}, Ints({1, 9, 2, 1}), false},
      {Op::kUnwindow, "float32[2,7,3]", {"float32[2,3,3]"}, Ints({2, 7, 2, 1}), false},
      {Op::kGatherElements, "float32[5,3]", {"float32[9,3]", "int64[5,1]"}, IntAttr{0}, true},
      {Op::kGatherElements, "float32[5,3]", {"float32[9,3]", "uint8[5,3]"}, IntAttr{0}, true},
      {Op::kGatherElements, "float32[5,3]", {"float32[9,3]", "float32[5,3]"}, IntAttr{0}, false},
      {Op::kGatherElements, "float32[5,3]", {"float32[9,3]", "int64[5,2]"}, IntAttr{0}, false},
      {Op::kGatherElements, "float32[5,3]", {"float32[9,3]", "int64[5]"}, IntAttr{0}, false},
      {Op::kGatherElements, "float32[9,5]", {"float32[9,3]", "int64[1,5]"}, IntAttr{2}, false},
      {Op::kScatterElements,
       "float32[9]",
       {"float32[9]", "int8[5]", "float32[5]"},
       ScatterAttr{0, ScatterMode::kAdd},
       true},
      {Op::kScatterElements,
       "float32[9]",
       {"float32[9]", "int8[5]", "float32[4]"},
       ScatterAttr{0, ScatterMode::kAdd},
       false},
      {Op::kScatterElements, "bool[9]", {"bool[9]", "int8[5]", "bool[5]"}, ScatterAttr{}, true},
      {Op::kScatterElements,
       "bool[9]",
       {"bool[9]", "int8[5]", "bool[5]"},
       ScatterAttr{0, ScatterMode::kMax},
       false},
      {Op::kIota, "int32[2,3]", {}, IntAttr{1}, true},
      {Op::kIota, "int32[2,3]", {}, IntAttr{2}, false},
      {Op::kIota, "bool[2,3]", {}, IntAttr{1}, false},
      {Op::kConst, "uint8", {}, ConstValue::Int(255), true},
      {Op::kConst, "uint8", {}, ConstValue::Int(-1), false},
      {Op::kConst, "int8", {}, ConstValue::Int(-128), true},
      {Op::kConst, "uint8[1]", {}, ConstValue::Int(1), false},
      {Op::kGradient, "float32[3]", {"float32", "float32[3]"}, {}, true},
      {Op::kGradient, "float32[3]", {"float32[1]", "float32[3]"}, {}, false},
      {Op::kGradient, "float32[3]", {"float32[2]", "float32[3]", "float32[2]"}, {}, true},
      {Op::kGradient, "int32[3]", {"float32", "int32[3]"}, {}, false},
      {Op::kRange, "int64", {}, RangeAttr{0, 4}, false},
  };
  for (const Case& c : cases) {
    Context context;
    const Node* node = Make(context, c);
    absl::Status status = VerifyNode(Level::kTensor, node);
    EXPECT_EQ(status.ok(), c.legal) << Describe(node) << ": " << status;
    if (!c.legal) {
      EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
      EXPECT_THAT(std::string(status.message()), HasSubstr(Describe(node)));
    }
  }
}

TEST(SpecTest, KernelLaws) {
  Context context;
  const Node* range = context.Get(Op::kRange, DType::kInt64, {}, {}, RangeAttr{0, 4});
  const Node* load = context.Get(Op::kLoad, DType::kFloat32, {}, {range}, IntAttr{0});
  const Node* sum =
      context.Get(Op::kReduce, DType::kFloat32, {}, {load, range}, ReduceAttr{ReduceKind::kSum});
  EXPECT_TRUE(Verify(Level::kKernel, {sum}).ok());

  const Node* no_range = context.Get(Op::kReduce, DType::kFloat32, {}, {load, load}, ReduceAttr{});
  EXPECT_FALSE(Verify(Level::kKernel, {no_range}).ok());
  const Node* by_float = context.Get(Op::kLoad, DType::kFloat32, {}, {load}, IntAttr{0});
  EXPECT_FALSE(Verify(Level::kKernel, {by_float}).ok());
  const Node* shaped = context.Get(Op::kNeg, DType::kFloat32, {2}, {load});
  EXPECT_FALSE(Verify(Level::kKernel, {shaped}).ok());
  const Node* input = context.Get(Op::kInput, DType::kFloat32, {}, {}, InputAttr{0});
  EXPECT_FALSE(Verify(Level::kKernel, {input}).ok());
  EXPECT_TRUE(Verify(Level::kTensor, {input}).ok());
}

TEST(SpecTest, FindsAnIllegalNodeBelowALegalOne) {
  Context context;
  const Node* x = context.Get(Op::kInput, DType::kInt32, {}, {}, InputAttr{0});
  const Node* bad = context.Get(Op::kSin, DType::kInt32, {}, {x});
  const Node* good = context.Get(Op::kNeg, DType::kInt32, {}, {bad});
  EXPECT_TRUE(VerifyNode(Level::kTensor, good).ok());
  EXPECT_THAT(std::string(Verify(Level::kTensor, {nullptr, good}).message()),
              HasSubstr("sin int32 (int32)"));
}

// A row is found by the op's number: in the wrong position it would be applied to another op.
TEST(SpecTest, EveryOpHasItsLevel) {
  for (int i = 0; i < kNumOps; ++i) {
    Context context;
    const Node* node = context.Get(static_cast<Op>(i), DType::kFloat32, {}, {});
    bool kernel_only = i >= static_cast<int>(Op::kRange);
    std::string message(VerifyNode(Level::kTensor, node).message());
    EXPECT_EQ(message.find("not an op of the tensor level") != std::string::npos, kernel_only)
        << Name(static_cast<Op>(i));
  }
}

TEST(SpecTest, CheckedNumElements) {
  EXPECT_EQ(CheckedNumElements(Shape{2, 3}), 6);
  EXPECT_EQ(CheckedNumElements(Shape{}), 1);
  EXPECT_EQ(CheckedNumElements(Shape{1LL << 40, 0}), 0);
  EXPECT_EQ(CheckedNumElements(Shape{1LL << 40, 1LL << 40, 0}), std::nullopt);
  EXPECT_EQ(CheckedNumElements(Shape{1LL << 40, 1LL << 40}), std::nullopt);
  EXPECT_EQ(CheckedNumElements(Shape{-1}), std::nullopt);
}

}  // namespace
}  // namespace kiln::ir
