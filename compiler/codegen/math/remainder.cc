// The floored remainder of floats: exact, except for the one addition that gives it the divisor's
// sign.
#include "compiler/codegen/math/helper.h"
#include "compiler/codegen/math/lanes.h"
#include "compiler/codegen/math/math.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

// Returns the divisor, or a power of two times it if the quotient would overflow.
Value* ReachableDivisor(const Lanes& l, Value* rest, Value* divisor) {
  // 2^1074 turns the smallest divisor into 1, and no rest overflows when it is divided by 1.
  Value* large = l.Mul(divisor, l.F(0x1p1000));
  Value* larger = l.Mul(large, l.F(0x1p74));
  auto overflows = [&](Value* by) { return l.Equal(l.Abs(l.Div(rest, by)), l.Infinity()); };
  return l.Select(overflows(large), larger, l.Select(overflows(divisor), large, divisor));
}

// rest - quotient * by, exact if that has few enough digits. Without fused multiply-add, factors
// are split, which overflows for the largest ones; these are scaled.
Value* MinusMultiple(const Lanes& l, Value* rest, Value* quotient, Value* by) {
  if (l.IsFused()) return l.Fma(l.Neg(quotient), by, rest);
  auto scale = [&](Value* condition, Value* value, double factor) {
    return l.Select(condition, l.Mul(value, l.F(factor)), value);
  };
  auto is_huge = [&](Value* value) { return l.Greater(l.Abs(value), l.F(0x1p900)); };
  Value* huge_rest = is_huge(rest);
  Value* huge_quotient = is_huge(quotient);
  by = scale(huge_quotient, scale(huge_rest, by, 0x1p-200), 0x1p200);
  quotient = scale(huge_quotient, quotient, 0x1p-200);
  Value* next = l.Fma(l.Neg(quotient), by, scale(huge_rest, rest, 0x1p-200));
  return scale(huge_rest, next, 0x1p200);
}

// One step of long division: subtracts a multiple of the divisor, so that the new rest is below
// 2^-52 times the old one, or below the divisor. It may have either sign. It has few enough digits
// to be exact: it is a multiple of the product of the quotient's and the divisor's last places.
Value* Step(const Lanes& l, Value* rest, Value* divisor) {
  Value* by = ReachableDivisor(l, rest, divisor);
  return MinusMultiple(l, rest, l.Trunc(l.Div(rest, by)), by);
}

// For doubles: returns fmod(x, y) for finite x and y other than 0, up to a multiple of y, below
// |y|; NaN for infinite x and for zero y.
Value* LongDivision(const Lanes& l, Value* x, Value* y) {
  llvm::IRBuilderBase& b = l.b;
  Value* divisor = l.Abs(y);
  llvm::BasicBlock* entry = b.GetInsertBlock();
  auto* loop = llvm::BasicBlock::Create(b.getContext(), "divide", entry->getParent());
  auto* done = llvm::BasicBlock::Create(b.getContext(), "divided", entry->getParent());
  b.CreateBr(loop);
  b.SetInsertPoint(loop);
  llvm::PHINode* rest = b.CreatePHI(l.type(), 2);
  rest->addIncoming(x, entry);
  auto too_large = [&](Value* value) { return b.CreateFCmpOGE(l.Abs(value), divisor); };
  Value* next = l.Select(too_large(rest), Step(l, rest, divisor), rest);
  rest->addIncoming(next, loop);
  Value* more = too_large(next);
  if (l.type()->isVectorTy()) more = b.CreateOrReduce(more);
  b.CreateCondBr(more, loop, done);
  b.SetInsertPoint(done);
  return next;
}

// Returns the remainder with the divisor's sign; a zero has it as well.
Value* WithSignOf(const Lanes& l, Value* rest, Value* y) {
  llvm::IRBuilderBase& b = l.b;
  Value* differ = b.CreateICmpSLT(b.CreateXor(l.Bits(rest), l.Bits(y)), l.I(0));
  Value* zero = l.Equal(rest, l.F(0));
  Value* signed_zero = l.FromBits(b.CreateAnd(l.Bits(y), l.Bits(l.F(-0.0))));
  Value* result = l.Select(differ, l.Add(rest, y), rest);
  result = l.Select(zero, signed_zero, result);
  return l.Select(b.CreateFCmpUNO(rest, y), l.NaN(), result);
}

Value* Modulo(llvm::IRBuilderBase& b, Value* x, Value* y) {
  Lanes l(b, x->getType());
  return WithSignOf(l, LongDivision(l, x, y), y);
}

Value* InDoubles(llvm::IRBuilderBase& b, absl::Span<Value* const> operands) {
  llvm::Type* type = operands[0]->getType();
  llvm::Type* wide = type->getWithNewType(b.getDoubleTy());
  return b.CreateFPCast(
      Modulo(b, b.CreateFPCast(operands[0], wide), b.CreateFPCast(operands[1], wide)), type);
}

}  // namespace

llvm::Value* EmitModulo(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y) {
  return CallHelper(builder, "mod", {x, y}, InDoubles);
}

}  // namespace kiln::codegen
