#include "compiler/codegen/llvm/ops.h"

#include <cstring>

#include "compiler/codegen/llvm/convert.h"
#include "compiler/codegen/math/math.h"
#include "compiler/ir/dtype.h"
#include "compiler/ops/host_tensor.h"
#include "compiler/schedule/reduction.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using ir::Op;
using llvm::IRBuilderBase;
using llvm::Value;

Value* Integer(Value* like, int64_t value) {
  return llvm::ConstantInt::getSigned(like->getType(), value);
}

// Returns the divisor, with 1 in place of values for which the processor traps. For the lowest
// number divided by -1, that also gives the right quotient: the lowest number, since it wraps.
Value* SafeDivisor(IRBuilderBase& b, bool is_signed, Value* x, Value* y) {
  Value* unsafe = b.CreateICmpEQ(y, Zero(y));
  if (is_signed) {
    const unsigned bits = y->getType()->getScalarSizeInBits();
    Value* lowest = llvm::ConstantInt::get(x->getType(), llvm::APInt::getSignedMinValue(bits));
    Value* overflow = b.CreateAnd(b.CreateICmpEQ(y, Integer(y, -1)), b.CreateICmpEQ(x, lowest));
    unsafe = b.CreateOr(unsafe, overflow);
  }
  return b.CreateSelect(unsafe, Integer(y, 1), y);
}

Value* EmitIntegerDivision(IRBuilderBase& b, bool is_signed, Value* x, Value* y) {
  Value* divisor = SafeDivisor(b, is_signed, x, y);
  Value* quotient;
  if (is_signed) {
    // The processor rounds towards zero; the floor is one less if the remainder is not 0 and its
    // sign differs from the divisor's.
    quotient = b.CreateSDiv(x, divisor);
    Value* rest = b.CreateSub(x, b.CreateMul(quotient, divisor));
    Value* inexact = b.CreateICmpNE(rest, Zero(rest));
    Value* negative = b.CreateICmpSLT(b.CreateXor(rest, divisor), Zero(rest));
    quotient = b.CreateSelect(b.CreateAnd(inexact, negative),
                              b.CreateSub(quotient, Integer(quotient, 1)), quotient);
  } else {
    quotient = b.CreateUDiv(x, divisor);
  }
  return b.CreateSelect(b.CreateICmpEQ(y, Zero(y)), Zero(quotient), quotient);
}

Value* EmitIntegerModulo(IRBuilderBase& b, bool is_signed, Value* x, Value* y) {
  Value* quotient = EmitIntegerDivision(b, is_signed, x, y);
  Value* rest = b.CreateSub(x, b.CreateMul(quotient, y));
  return b.CreateSelect(b.CreateICmpEQ(y, Zero(y)), Zero(rest), rest);
}

Value* EmitShift(IRBuilderBase& b, Op op, bool is_signed, Value* x, Value* amount) {
  const unsigned bits = x->getType()->getScalarSizeInBits();
  // LLVM's shifts by the width or more are poison. Unsigned, so that negative amounts are too large
  // as well.
  Value* fits = b.CreateICmpULT(amount, Integer(amount, bits));
  if (op == Op::kShr && is_signed) {
    // Only the sign of a signed number remains.
    return b.CreateAShr(x, b.CreateSelect(fits, amount, Integer(amount, bits - 1)));
  }
  Value* safe = b.CreateSelect(fits, amount, Zero(amount));
  Value* shifted = op == Op::kShl ? b.CreateShl(x, safe) : b.CreateLShr(x, safe);
  return b.CreateSelect(fits, shifted, Zero(shifted));
}

Value* EmitExtremum(IRBuilderBase& b, Op op, DType dtype, Value* x, Value* y) {
  const bool maximum = op == Op::kMax;
  if (ir::IsFloat(dtype)) return maximum ? EmitMax(b, x, y) : EmitMin(b, x, y);
  if (dtype == DType::kBool) return maximum ? b.CreateOr(x, y) : b.CreateAnd(x, y);
  Value* less = ir::IsSigned(dtype) ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
  return maximum ? b.CreateSelect(less, y, x) : b.CreateSelect(less, x, y);
}

Value* EmitArithmetic(IRBuilderBase& b, Op op, DType dtype, Value* x, Value* y) {
  const bool is_float = ir::IsFloat(dtype);
  const bool is_signed = ir::IsSigned(dtype);
  switch (op) {
    case Op::kAdd:
      return is_float ? b.CreateFAdd(x, y) : b.CreateAdd(x, y);
    case Op::kSub:
      return is_float ? b.CreateFSub(x, y) : b.CreateSub(x, y);
    case Op::kMul:
      return is_float ? b.CreateFMul(x, y) : b.CreateMul(x, y);
    case Op::kDiv:
      return b.CreateFDiv(x, y);
    case Op::kPow:
      return is_float ? EmitPow(b, x, y) : EmitIntegerPow(b, is_signed, x, y);
    case Op::kIDiv:
      return EmitIntegerDivision(b, is_signed, x, y);
    case Op::kMod:
      return is_float ? EmitModulo(b, x, y) : EmitIntegerModulo(b, is_signed, x, y);
    case Op::kMax:
    case Op::kMin:
      return EmitExtremum(b, op, dtype, x, y);
    case Op::kShl:
    case Op::kShr:
      return EmitShift(b, op, is_signed, x, y);
    case Op::kAnd:
      return b.CreateAnd(x, y);
    case Op::kOr:
      return b.CreateOr(x, y);
    case Op::kXor:
      return b.CreateXor(x, y);
    default:
      return nullptr;
  }
}

Value* EmitComparison(IRBuilderBase& b, Op op, DType dtype, Value* x, Value* y) {
  if (ir::IsFloat(dtype)) {
    if (op == Op::kCmpLt) return b.CreateFCmpOLT(x, y);
    // NaN differs from every value, including itself (IEEE 754).
    return op == Op::kCmpEq ? b.CreateFCmpOEQ(x, y) : b.CreateFCmpUNE(x, y);
  }
  if (op == Op::kCmpEq) return b.CreateICmpEQ(x, y);
  if (op == Op::kCmpNe) return b.CreateICmpNE(x, y);
  return ir::IsSigned(dtype) ? b.CreateICmpSLT(x, y) : b.CreateICmpULT(x, y);
}

Value* EmitUnary(IRBuilderBase& b, const ir::Node* node, Value* x) {
  const DType from = node->operand(0)->dtype();
  const bool is_float = ir::IsFloat(from);
  switch (node->op()) {
    case Op::kNeg:
      return is_float ? b.CreateFNeg(x) : b.CreateNeg(x);
    case Op::kNot:
      return b.CreateNot(x);
    case Op::kReciprocal:
      return EmitReciprocal(b, x);
    case Op::kSqrt:
      return EmitSqrt(b, x);
    case Op::kExp2:
      return EmitExp2(b, x);
    case Op::kLog2:
      return EmitLog2(b, x);
    case Op::kSin:
      return EmitSin(b, x);
    case Op::kTrunc:
      return is_float ? EmitTrunc(b, x) : x;
    case Op::kCast:
      return EmitCast(b, from, node->dtype(), x);
    case Op::kBitcast:
      // The bits are those in memory, where a bool is a byte.
      if (from == DType::kBool) return b.CreateZExt(x, WithLanesOf(x, b.getInt8Ty()));
      if (node->dtype() == DType::kBool) return b.CreateICmpNE(x, Zero(x));
      return b.CreateBitCast(x, WithLanesOf(x, ScalarType(b.getContext(), node->dtype())));
    default:
      return nullptr;
  }
}

// Ops that work for values of any dtype, including short floats.
bool MovesOnly(Op op) { return op == Op::kWhere || op == Op::kCast || op == Op::kBitcast; }

Value* HalfOf(IRBuilderBase& b, Value* vector, unsigned begin, unsigned count) {
  llvm::SmallVector<int, 32> mask;
  for (unsigned i = 0; i < count; ++i) mask.push_back(static_cast<int>(begin + i));
  return b.CreateShuffleVector(vector, mask);
}

// Selects between two constants as integers. LLVM's x86 backend makes a table of two floating-point
// constants and loads from it; if it later finds that the condition is constant, version 22 takes
// the wrong one for the value of that load.
Value* Select(IRBuilderBase& b, Value* condition, Value* x, Value* y) {
  if (!llvm::isa<llvm::ConstantFP>(x) || !llvm::isa<llvm::ConstantFP>(y))
    return b.CreateSelect(condition, x, y);
  llvm::Type* bits = b.getIntNTy(x->getType()->getScalarSizeInBits());
  Value* chosen = b.CreateSelect(condition, b.CreateBitCast(x, bits), b.CreateBitCast(y, bits));
  return b.CreateBitCast(chosen, x->getType());
}

}  // namespace

bool IsSupported(const ir::Node* node) {
  const Op op = node->op();
  if (op == Op::kConst || op == Op::kRange || op == Op::kLoad || MovesOnly(op)) return true;
  for (const ir::Node* operand : node->operands()) {
    if (ir::IsShortFloat(operand->dtype())) return false;
  }
  if (op == Op::kReduce) return true;
  const bool is_float = !node->operands().empty() && ir::IsFloat(node->operand(0)->dtype());
  if (op >= Op::kNeg && op <= Op::kNot) {
    const bool floats_only = op == Op::kReciprocal || op == Op::kSqrt || op == Op::kExp2 ||
                             op == Op::kLog2 || op == Op::kSin;
    return !floats_only || is_float;
  }
  if (op < Op::kAdd || op > Op::kShr) return false;
  if (op == Op::kDiv) return is_float;
  const bool integers_only = op == Op::kIDiv || op >= Op::kAnd;
  return !integers_only || !is_float;
}

llvm::Type* ScalarType(llvm::LLVMContext& context, DType dtype) {
  if (dtype == DType::kBool) return llvm::Type::getInt1Ty(context);
  if (dtype == DType::kFloat32) return llvm::Type::getFloatTy(context);
  if (dtype == DType::kFloat64) return llvm::Type::getDoubleTy(context);
  // Integers, and the bits of short floats.
  return llvm::IntegerType::get(context, static_cast<unsigned>(ir::SizeOf(dtype)) * 8);
}

llvm::Type* MemoryType(llvm::LLVMContext& context, DType dtype) {
  return dtype == DType::kBool ? llvm::Type::getInt8Ty(context) : ScalarType(context, dtype);
}

Value* EmitOp(IRBuilderBase& b, const ir::Node* node, absl::Span<Value* const> operands,
              bool known_nonnegative) {
  if (node->op() == Op::kWhere) return Select(b, operands[0], operands[1], operands[2]);
  if (operands.size() == 1) return EmitUnary(b, node, operands[0]);
  const DType dtype = node->operand(0)->dtype();
  if (node->op() >= Op::kCmpLt && node->op() <= Op::kCmpNe) {
    return EmitComparison(b, node->op(), dtype, operands[0], operands[1]);
  }
  if (known_nonnegative && node->op() == Op::kIDiv) return b.CreateUDiv(operands[0], operands[1]);
  if (known_nonnegative && node->op() == Op::kMod) return b.CreateURem(operands[0], operands[1]);
  return EmitArithmetic(b, node->op(), dtype, operands[0], operands[1]);
}

Value* EmitComposite(IRBuilderBase& builder, MathComposite::Kind kind, Value* argument) {
  switch (kind) {
    case MathComposite::Kind::kExp:
      return EmitExp(builder, argument);
    case MathComposite::Kind::kExpOfMinus:
      return EmitExp(builder, builder.CreateFNeg(argument));
    case MathComposite::Kind::kLog:
      return EmitLog(builder, argument);
    case MathComposite::Kind::kCos:
      return EmitCos(builder, argument);
  }
  return nullptr;
}

llvm::Constant* EmitConstant(llvm::LLVMContext& context, const ir::Node* node) {
  llvm::Type* type = ScalarType(context, node->dtype());
  const auto& value = node->attr<ir::ConstValue>();
  if (ir::IsShortFloat(node->dtype())) {
    // Host tensors implement the encoding, and round like all other code.
    const auto held = ops::HostTensor::Of(node->dtype(), {}, {value.AsDouble()});
    uint64_t encoded = 0;
    std::memcpy(&encoded, held.bytes.data(), held.bytes.size());
    return llvm::ConstantInt::get(type, encoded);
  }
  if (ir::IsFloat(node->dtype())) return llvm::ConstantFP::get(type, value.AsDouble());
  const unsigned bits = type->getIntegerBitWidth();
  return llvm::ConstantInt::get(type,
                                llvm::APInt(64, static_cast<uint64_t>(value.AsInt())).trunc(bits));
}

Op CombineOpOf(const ir::Node* reduce) {
  const Op combine = schedule::CombineOp(reduce->attr<ir::ReduceAttr>().kind);
  if (reduce->dtype() != DType::kBool) return combine;
  return combine == Op::kMul ? Op::kAnd : Op::kOr;
}

Value* EmitCombine(IRBuilderBase& b, const ir::Node* reduce, Value* x, Value* y) {
  return EmitArithmetic(b, CombineOpOf(reduce), reduce->dtype(), x, y);
}

Value* EmitHorizontal(IRBuilderBase& b, Op op, DType dtype, Value* vector) {
  unsigned lanes = llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements();
  for (; lanes > 1; lanes /= 2) {
    Value* low = HalfOf(b, vector, 0, lanes / 2);
    Value* high = HalfOf(b, vector, lanes / 2, lanes / 2);
    vector = EmitArithmetic(b, op, dtype, low, high);
  }
  return b.CreateExtractElement(vector, uint64_t{0});
}

}  // namespace kiln::codegen
