// log2 and log: x = 2^e m with m in [sqrt(1/2), sqrt(2)), so that e and log(m) never cancel.
#include "compiler/codegen/math/logarithm.h"

#include <array>

#include "compiler/codegen/math/math.h"

namespace kiln::codegen {
namespace {

using Value = llvm::Value;

// log2(1+f) = f log2(e) + f^2 Q(f) and log(1+f) = f + f^2 Q(f) for 1+f in [sqrt(1/2), sqrt(2)), to
// 2^-27.7 of the result.
constexpr std::array kLog2Float = {-0x1.715470p-1, 0x1.ec7094p-2,  -0x1.715adap-2,
                                   0x1.277f32p-2,  -0x1.eaad8cp-3, 0x1.a2d52ep-3,
                                   -0x1.878a0ap-3, 0x1.7e9c56p-3,  -0x1.c4a262p-4};
constexpr std::array kLogFloat = {-0x1.fffff8p-2, 0x1.555550p-2,  -0x1.000430p-2,
                                  0x1.99a41ep-3,  -0x1.54266cp-3, 0x1.226e12p-3,
                                  -0x1.0f38f8p-3, 0x1.085ca6p-3,  -0x1.385fccp-4};
// log(m) = 2 (s + s^3/3 + s^5/5 + …) with s = (m-1)/(m+1): the terms from 1/5 on.
constexpr std::array kAtanhTail = {1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                   1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25};
// The same from 1/3 on, for 2^-45.
constexpr std::array kAtanhShort = {1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,
                                    1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17};

struct Split {
  Value* exponent;  // as a float
  Value* mantissa;
};

Split SplitNormal(const Lanes& l, Value* x) {
  // Relative to the bits of sqrt(1/2), the exponent field changes at sqrt(1/2) times a power of
  // two.
  Value* bits = l.Bits(x);
  Value* from_root =
      l.b.CreateSub(bits, l.Bits(l.F(l.IsDouble() ? 0x1.6a09e667f3bcdp-1 : 0x1.6a09e6p-1)));
  Value* exponent = l.b.CreateAShr(from_root, l.I(l.MantissaBits()));
  Value* mantissa = l.b.CreateSub(bits, l.b.CreateShl(exponent, l.I(l.MantissaBits())));
  return {l.ToFloat(exponent), l.FromBits(mantissa)};
}

Split SplitAny(const Lanes& l, Value* x) {
  // A denormal number has no exponent in its field; 2^53 or 2^24 times it is normal.
  Value* tiny = l.Less(x, l.F(l.IsDouble() ? 0x1p-1022 : 0x1p-126));
  const int shift = l.MantissaBits() + 1;
  Split split = SplitNormal(l, l.Select(tiny, l.Mul(x, l.F(l.IsDouble() ? 0x1p53 : 0x1p24)), x));
  split.exponent = l.Add(split.exponent, l.Select(tiny, l.F(-shift), l.F(0)));
  return split;
}

Value* WithSpecialValues(const Lanes& l, Value* x, Value* logarithm) {
  Value* result = l.Select(l.Equal(x, l.Infinity()), x, logarithm);
  result = l.Select(l.Equal(x, l.F(0)), l.Neg(l.Infinity()), result);
  return l.Select(l.b.CreateFCmpULT(x, l.F(0)), l.NaN(), result);  // negative or NaN
}

// large + (small + tail), where `large` is zero or exceeds |small|: keeps the sum's rounding error.
Value* Join(const Lanes& l, Value* large, Value* small, Value* tail) {
  DoubleDouble sum = l.FastTwoSum(large, small);
  return l.Add(sum.high, l.Add(sum.low, tail));
}

Value* Log2OfFloat(const Lanes& l, Value* x) {
  Split split = SplitAny(l, x);
  Value* f = l.Sub(split.mantissa, l.F(1));
  // log2(e) in two parts.
  DoubleDouble linear = l.TwoProduct(f, l.F(0x1.715476p+0));
  Value* tail = l.MulAdd(f, l.F(0x1.4ae0c0p-26), linear.low);
  tail = l.Fma(l.Mul(f, f), l.Polynomial(f, kLog2Float), tail);
  return Join(l, split.exponent, linear.high, tail);
}

Value* LogOfFloat(const Lanes& l, Value* x) {
  Split split = SplitAny(l, x);
  Value* f = l.Sub(split.mantissa, l.F(1));
  // The first 16 bits of log(2), so that the exponent's product is exact, and the rest.
  Value* tail = l.Mul(split.exponent, l.F(0x1.7f7d1cp-20));
  tail = l.MulAdd(l.Mul(f, f), l.Polynomial(f, kLogFloat), tail);
  return Join(l, l.Mul(split.exponent, l.F(0x1.62e4p-1)), f, tail);
}

// Returns (m-1)/(m+1) and its rounding error.
DoubleDouble Quotient(const Lanes& l, Value* mantissa) {
  Value* f = l.Sub(mantissa, l.F(1));
  DoubleDouble divisor = l.FastTwoSum(l.F(1), mantissa);
  Value* s = l.Div(f, divisor.high);
  Value* rest = l.MulAdd(l.Neg(s), divisor.low, l.Fma(l.Neg(s), divisor.high, f));
  return {s, l.Div(rest, divisor.high)};
}

}  // namespace

DoubleDouble EmitPreciseLog2(const Lanes& l, Value* x) {
  Split split = SplitAny(l, x);
  DoubleDouble s = Quotient(l, split.mantissa);
  DoubleDouble z = l.Multiply(s, s);
  Value* tail = l.Mul(z.high, l.Polynomial(z.high, kAtanhTail));
  // The series from s^3 on, with 1/3 in two parts; 2 log2(e), also in two parts, turns it into a
  // base-2 logarithm.
  DoubleDouble series = l.FastTwoSum(l.F(0x1.5555555555555p-2), tail);
  series.low = l.Add(series.low, l.F(0x1.5555555555555p-56));
  DoubleDouble cubic = l.Multiply(s, l.Multiply(z, series));
  DoubleDouble sum = l.FastTwoSum(s.high, cubic.high);
  sum.low = l.Add(sum.low, l.Add(s.low, cubic.low));
  DoubleDouble logarithm = l.Multiply(sum, l.Constant(0x1.71547652b82fep+1, 0x1.777d0ffda0d24p-55));
  DoubleDouble result = l.FastTwoSum(split.exponent, logarithm.high);
  return l.FastTwoSum(result.high, l.Add(result.low, logarithm.low));
}

Value* EmitQuickLog2(const Lanes& l, Value* x) {
  Split split = SplitNormal(l, x);
  Value* s = l.Div(l.Sub(split.mantissa, l.F(1)), l.Add(split.mantissa, l.F(1)));
  Value* z = l.Mul(s, s);
  Value* series = l.MulAdd(l.Mul(s, z), l.Polynomial(z, kAtanhShort), s);
  Value* logarithm = l.MulAdd(series, l.F(0x1.71547652b82fep+1), split.exponent);
  return WithSpecialValues(l, x, logarithm);
}

llvm::Value* EmitLog2(llvm::IRBuilderBase& builder, llvm::Value* x) {
  Lanes l(builder, x->getType());
  if (!l.IsDouble()) return WithSpecialValues(l, x, Log2OfFloat(l, x));
  return WithSpecialValues(l, x, EmitPreciseLog2(l, x).high);
}

llvm::Value* EmitLog(llvm::IRBuilderBase& builder, llvm::Value* x) {
  Lanes l(builder, x->getType());
  if (!l.IsDouble()) return WithSpecialValues(l, x, LogOfFloat(l, x));
  DoubleDouble product =
      l.Multiply(EmitPreciseLog2(l, x), l.Constant(0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56));
  return WithSpecialValues(l, x, l.Add(product.high, product.low));
}

}  // namespace kiln::codegen
