#include "compiler/codegen/llvm/convert.h"

#include <cmath>

#include "compiler/codegen/llvm/ops.h"
#include "compiler/codegen/math/instructions.h"
#include "compiler/codegen/math/lanes.h"
#include "compiler/ir/dtype.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Intrinsics.h"

namespace kiln::codegen {
namespace {

using ir::DType;
using llvm::IRBuilderBase;
using llvm::Value;

Value* Bits(Value* like, uint64_t bits) { return llvm::ConstantInt::get(like->getType(), bits); }

unsigned SignBit(DType dtype) { return 8 * static_cast<unsigned>(ir::SizeOf(dtype)) - 1; }

// Moves exponent and mantissa to their places in float32, which gives a number that is too small by
// a power of two; multiplying by that also makes denormal numbers normal.
Value* BitsToFloat(IRBuilderBase& b, DType from, Value* bits) {
  const ir::FloatFormat& format = ir::FormatOf(from);
  Value* wide = b.CreateZExt(bits, WithLanesOf(bits, b.getInt32Ty()));
  Value* magnitude = b.CreateAnd(wide, Bits(wide, format.all_bits()));
  Lanes l(b, WithLanesOf(bits, b.getFloatTy()));
  Value* number = l.Mul(l.FromBits(b.CreateShl(magnitude, 23 - format.mantissa_bits)),
                        l.F(std::ldexp(1.0, 127 - format.bias())));
  Value* beyond = Bits(wide, format.beyond_bits());
  number = l.Select(b.CreateICmpUGE(magnitude, beyond), l.NaN(), number);
  if (format.has_infinity)
    number = l.Select(b.CreateICmpEQ(magnitude, beyond), l.Infinity(), number);
  Value* sign = b.CreateShl(b.CreateLShr(wide, SignBit(from)), 31);
  return l.FromBits(b.CreateOr(l.Bits(number), sign));
}

Value* HalfToFloat(IRBuilderBase& b, Value* bits) {
  if (!MayUse(b, Instruction::kConvertHalf)) return BitsToFloat(b, DType::kFloat16, bits);
  Value* half = b.CreateBitCast(bits, WithLanesOf(bits, b.getHalfTy()));
  return b.CreateFPExt(half, WithLanesOf(bits, b.getFloatTy()));
}

Value* ShortToFloat(IRBuilderBase& b, DType from, Value* bits) {
  switch (from) {
    case DType::kFloat16:
      return HalfToFloat(b, bits);
    // The upper half of a float32.
    case DType::kBFloat16: {
      Value* wide = b.CreateZExt(bits, WithLanesOf(bits, b.getInt32Ty()));
      return b.CreateBitCast(b.CreateShl(wide, 16), WithLanesOf(bits, b.getFloatTy()));
    }
    // The upper half of a float16.
    case DType::kFloat8E5M2: {
      Value* wide = b.CreateZExt(bits, WithLanesOf(bits, b.getInt16Ty()));
      return HalfToFloat(b, b.CreateShl(wide, 8));
    }
    default:
      return BitsToFloat(b, from, bits);
  }
}

Value* FloatToHalf(IRBuilderBase& b, Value* x) {
  Value* half = b.CreateFPTrunc(x, WithLanesOf(x, b.getHalfTy()));
  return b.CreateBitCast(half, WithLanesOf(x, b.getInt16Ty()));
}

// Adds half a last place (less one if that place is 0): rounds to nearest, ties to even. A carry
// out of the mantissa raises the exponent, which is correct, up to infinity.
Value* RoundBits(IRBuilderBase& b, Value* bits, unsigned dropped) {
  Value* last = b.CreateAnd(b.CreateLShr(bits, dropped), Bits(bits, 1));
  Value* half = Bits(bits, (uint64_t{1} << (dropped - 1)) - 1);
  return b.CreateLShr(b.CreateAdd(bits, b.CreateAdd(half, last)), dropped);
}

Value* FloatToBFloat(IRBuilderBase& b, Value* x) {
  if (MayUse(b, Instruction::kRoundBFloat)) {
    Value* rounded = b.CreateFPTrunc(x, WithLanesOf(x, b.getBFloatTy()));
    return b.CreateBitCast(rounded, WithLanesOf(x, b.getInt16Ty()));
  }
  Lanes l(b, x->getType());
  Value* bits = l.Bits(x);
  // A NaN is made quiet instead of rounded: with its payload in the dropped bits, it would become
  // an infinity.
  Value* nan = b.CreateOr(b.CreateLShr(bits, 16), Bits(bits, 0x40));
  Value* rounded = l.Select(b.CreateFCmpUNO(x, x), nan, RoundBits(b, bits, 16));
  return b.CreateTrunc(rounded, WithLanesOf(x, b.getInt16Ty()));
}

// Denormal results are rounded by an addition that moves their last place to float32's.
Value* FloatToBits(IRBuilderBase& b, DType to, Value* x) {
  const ir::FloatFormat& format = ir::FormatOf(to);
  Lanes l(b, x->getType());
  const unsigned dropped = 23 - format.mantissa_bits;
  Value* magnitude = b.CreateAnd(l.Bits(x), l.I(0x7fffffff));
  Value* normal = b.CreateSub(RoundBits(b, magnitude, dropped),
                              l.I((127 - format.bias()) << format.mantissa_bits));
  Value* shift = l.F(std::ldexp(1.0, format.exponent_min() - format.mantissa_bits + 23));
  Value* denormal = b.CreateSub(l.Bits(l.Add(l.FromBits(magnitude), shift)), l.Bits(shift));
  Value* small = b.CreateICmpULT(magnitude, l.Bits(l.F(std::ldexp(1.0, format.exponent_min()))));
  Value* bits = l.Select(small, denormal, normal);
  bits =
      l.Select(b.CreateICmpUGT(bits, l.I(format.largest_bits())), l.I(format.beyond_bits()), bits);
  bits = l.Select(b.CreateFCmpUNO(x, x), l.I(format.nan_bits()), bits);
  bits = b.CreateOr(bits, b.CreateShl(b.CreateLShr(l.Bits(x), 31), SignBit(to)));
  return b.CreateTrunc(bits, WithLanesOf(x, ScalarType(b.getContext(), to)));
}

Value* FloatToShort(IRBuilderBase& b, DType to, Value* x) {
  if (to == DType::kFloat16 && MayUse(b, Instruction::kConvertHalf)) return FloatToHalf(b, x);
  if (to == DType::kBFloat16) return FloatToBFloat(b, x);
  return FloatToBits(b, to, x);
}

// Round to odd: of the two floats around an inexact double, returns the one whose last bit is 1.
// Rounding that to fewer bits gives the same result as rounding the double (Boldo and Melquiond
// 2008).
Value* DoubleToOddFloat(IRBuilderBase& b, Value* x) {
  Lanes l(b, WithLanesOf(x, b.getFloatTy()));
  Value* nearest = b.CreateFPTrunc(x, l.type());
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* too_large = b.CreateFCmpOGT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back),
                                     b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* bits = l.Bits(nearest);
  // The bits of floats are ordered like their magnitudes: one less is the neighbour towards zero.
  bits = b.CreateSub(bits, b.CreateZExt(too_large, bits->getType()));
  Value* inexact = b.CreateFCmpONE(back, x);
  return l.FromBits(b.CreateOr(bits, b.CreateZExt(inexact, bits->getType())));
}

// Converts 64 bits to a double. The low bits of large numbers become one bit that says whether any
// was set, again so that only one rounding remains.
Value* LongToDouble(IRBuilderBase& b, bool is_signed, Value* x) {
  Value* low = b.CreateAnd(x, Bits(x, 0xffff));
  Value* sticky = b.CreateShl(b.CreateZExt(b.CreateICmpNE(low, Zero(low)), x->getType()), 16);
  Value* jammed = b.CreateOr(b.CreateAnd(x, Bits(x, ~uint64_t{0xffff})), sticky);
  Value* size = is_signed ? b.CreateXor(x, b.CreateAShr(x, 63)) : x;
  Value* large = b.CreateICmpUGE(size, Bits(x, uint64_t{1} << 48));
  Value* safe = b.CreateSelect(large, jammed, x);
  llvm::Type* type = WithLanesOf(x, b.getDoubleTy());
  return is_signed ? b.CreateSIToFP(safe, type) : b.CreateUIToFP(safe, type);
}

// `type`: of floats. Selects between two constants for a bool: LLVM 22 never finishes legalising
// conversions of two comparisons' bits to doubles without AVX-512.
Value* IntegerToFloat(IRBuilderBase& b, DType from, llvm::Type* type, Value* x) {
  if (from == DType::kBool) {
    return b.CreateSelect(x, llvm::ConstantFP::get(type, 1), llvm::ConstantFP::get(type, 0));
  }
  return ir::IsSigned(from) ? b.CreateSIToFP(x, type) : b.CreateUIToFP(x, type);
}

Value* IntegerToShort(IRBuilderBase& b, DType from, DType to, Value* x) {
  // 16 bits are exact in float32 and 32 in double, so that every integer is rounded once, in the
  // last step.
  if (ir::SizeOf(from) <= 2) {
    llvm::Type* type = WithLanesOf(x, b.getFloatTy());
    return FloatToShort(b, to, IntegerToFloat(b, from, type, x));
  }
  llvm::Type* type = WithLanesOf(x, b.getDoubleTy());
  Value* number = ir::SizeOf(from) == 8 ? LongToDouble(b, ir::IsSigned(from), x)
                                        : IntegerToFloat(b, from, type, x);
  return FloatToShort(b, to, DoubleToOddFloat(b, number));
}

// Casts between dtypes that registers have.
Value* CastWide(IRBuilderBase& b, DType from, DType to, Value* x) {
  if (to == DType::kBool) {
    // The unordered comparison makes NaN true.
    return ir::IsFloat(from) ? b.CreateFCmpUNE(x, Zero(x)) : b.CreateICmpNE(x, Zero(x));
  }
  llvm::Type* type = WithLanesOf(x, ScalarType(b.getContext(), to));
  if (ir::IsFloat(from)) {
    if (ir::IsFloat(to)) return b.CreateFPCast(x, type);
    // LLVM's plain conversions give poison out of range; these saturate, and give 0 for NaN.
    const auto intrinsic =
        ir::IsSigned(to) ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat;
    return b.CreateIntrinsic(intrinsic, {type, x->getType()}, {x});
  }
  if (!ir::IsFloat(to)) return b.CreateIntCast(x, type, ir::IsSigned(from));
  return IntegerToFloat(b, from, type, x);
}

}  // namespace

Value* EmitCast(IRBuilderBase& b, DType from, DType to, Value* x) {
  if (from == to) return x;
  if (ir::IsShortFloat(from)) {
    // float32 holds every short float exactly.
    return EmitCast(b, DType::kFloat32, to, ShortToFloat(b, from, x));
  }
  if (!ir::IsShortFloat(to)) return CastWide(b, from, to, x);
  if (from == DType::kFloat32) return FloatToShort(b, to, x);
  if (from == DType::kFloat64) return FloatToShort(b, to, DoubleToOddFloat(b, x));
  return IntegerToShort(b, from, to, x);
}

}  // namespace kiln::codegen
