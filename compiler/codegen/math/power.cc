// x^y = 2^(y log2(|x|)), with the sign and special values handled separately.
#include "compiler/codegen/math/exponential.h"
#include "compiler/codegen/math/lanes.h"
#include "compiler/codegen/math/logarithm.h"
#include "compiler/codegen/math/math.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

Value* MagnitudeOfFloats(const Lanes& l, Value* absolute, Value* y) {
  // In double, where every float is normal, the quick logarithm is precise enough.
  llvm::Type* wide = l.type()->getWithNewType(l.b.getDoubleTy());
  Lanes d(l.b, wide);
  Value* logarithm = EmitQuickLog2(d, l.b.CreateFPExt(absolute, wide));
  Value* power = EmitExp2(l.b, d.Mul(l.b.CreateFPExt(y, wide), logarithm));
  return l.b.CreateFPTrunc(power, l.type());
}

Value* MagnitudeOfDoubles(const Lanes& l, Value* absolute, Value* y) {
  DoubleDouble logarithm = EmitPreciseLog2(l, absolute);
  Value* zero = l.Equal(absolute, l.F(0));
  Value* special = l.b.CreateOr(zero, l.Equal(absolute, l.Infinity()));
  Value* infinity = l.Select(zero, l.Neg(l.Infinity()), l.Infinity());
  DoubleDouble exponent = l.TwoProduct(y, l.Select(special, infinity, logarithm.high));
  Value* low = l.MulAdd(y, logarithm.low, exponent.low);
  // Where the result is infinite or zero anyway, the low part may be NaN.
  low = l.Select(l.Less(l.Abs(exponent.high), l.F(1100)), low, l.F(0));
  return EmitPreciseExp2(l, {exponent.high, low});
}

}  // namespace

llvm::Value* EmitPow(llvm::IRBuilderBase& builder, llvm::Value* x, llvm::Value* y) {
  Lanes l(builder, x->getType());
  Value* absolute = l.Abs(x);
  Value* power =
      l.IsDouble() ? MagnitudeOfDoubles(l, absolute, y) : MagnitudeOfFloats(l, absolute, y);
  power = l.Select(l.Equal(absolute, l.F(1)), l.F(1), power);  // for y = infinity, too

  Value* is_integer = l.Equal(l.Trunc(y), y);
  Value* half = l.Mul(y, l.F(0.5));
  Value* is_odd = builder.CreateAnd(is_integer, builder.CreateFCmpONE(l.Trunc(half), half));
  Value* sign_bit = builder.CreateAnd(l.Bits(x), l.Bits(l.F(-0.0)));
  Value* sign = l.Select(is_odd, sign_bit, l.I(0));
  power = l.FromBits(builder.CreateOr(l.Bits(power), sign));

  Value* finite_negative = builder.CreateAnd(l.Less(x, l.F(0)), l.Less(absolute, l.Infinity()));
  Value* is_nan =
      builder.CreateOr(builder.CreateFCmpUNO(x, y),
                       builder.CreateAnd(finite_negative, builder.CreateNot(is_integer)));
  power = l.Select(is_nan, l.NaN(), power);
  // x^0 and 1^y are 1 even for NaN (IEEE 754-2019, 9.2.1).
  Value* is_one = builder.CreateOr(l.Equal(y, l.F(0)), l.Equal(x, l.F(1)));
  return l.Select(is_one, l.F(1), power);
}

}  // namespace kiln::codegen
