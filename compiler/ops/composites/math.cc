// Elementwise functions built from primitives.
#include <array>
#include <limits>
#include <numbers>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

const Node* Negative(Builder& b, const Node* x) { return b.Less(x, b.Const(x->dtype(), 0)); }

Expansion ExpandExp(Builder& b, Operands x, const Attributes&) { return b.Exp(x[0]); }
Expansion ExpandLog(Builder& b, Operands x, const Attributes&) { return b.Log(x[0]); }
Expansion ExpandCos(Builder& b, Operands x, const Attributes&) { return b.Cos(x[0]); }
Expansion ExpandTan(Builder& b, Operands x, const Attributes&) {
  return b.Div(b.Sin(x[0]), b.Cos(x[0]));
}

// Near 0, where 2 sigmoid(2x) - 1 cancels: x + x^3 times a rational function of x^2, as in the
// Cephes library (Moshier 1989).
const Node* TanhNear(Builder& b, const Node* x) {
  static constexpr std::array<double, 5> kSingle = {
      -5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1};
  static constexpr std::array<double, 3> kNumerator = {
      -9.64399179425052238628e-1, -9.92877231001918586564e1, -1.61468768441708447952e3};
  static constexpr std::array<double, 4> kDenominator = {
      1.0, 1.12811678491632931402e2, 2.23548839060100448583e3, 4.84406305325125486048e3};
  const Node* square = b.Mul(x, x);
  const Node* rest = x->dtype() == DType::kFloat64 ? b.Div(Polynomial(b, square, kNumerator),
                                                           Polynomial(b, square, kDenominator))
                                                   : Polynomial(b, square, kSingle);
  const Node* near = b.Add(x, b.Mul(b.Mul(x, square), rest));
  return b.Where(b.Equal(x, b.Const(x->dtype(), 0)), x, near);  // keeps -0
}

// Returns x where `is_near`, else 0, so that a branch that is not selected stays finite: an
// infinity would make its gradient NaN.
const Node* Near(Builder& b, const Node* is_near, const Node* x) {
  return b.Where(is_near, x, b.Const(x->dtype(), 0));
}

Expansion ExpandTanh(Builder& b, Operands x, const Attributes&) {
  const Node* size = Abs(b, x[0]);
  const Node* far = b.Add(b.Mul(Sigmoid(b, b.Mul(size, -2.0)), -2.0), 1.0);
  // The range of Cephes' approximation.
  const Node* is_near = b.Less(size, b.Const(x[0]->dtype(), 0.625));
  return b.Where(is_near, TanhNear(b, Near(b, is_near, x[0])),
                 b.Where(Negative(b, x[0]), b.Neg(far), far));
}

// Near 0 erf(x) = x + x P(x^2); elsewhere 1 - erfc(x) by Numerical Recipes' Chebyshev fit of erfc
// (fractional error 1.2e-7). In float32 erf is 1 for x >= 4.
const Node* ErfSingle(Builder& b, const Node* x) {
  static constexpr std::array<double, 7> kSeries = {
      8.88742507e-05, -8.25468916e-04, 5.21008903e-03, -2.68627573e-02,
      1.12837516e-01, -3.76126379e-01, 1.28379166e-01};
  static constexpr std::array<double, 10> kChebyshev = {
      0.17087277,  -0.82215223, 1.48851587, -1.13520398, 0.27886807,
      -0.18628806, 0.09678418,  0.37409196, 1.00002368,  -1.26551223};
  const Node* size = Abs(b, x);
  const Node* is_near = b.Less(size, b.Const(x->dtype(), 0.84375));
  const Node* inside = Near(b, is_near, x);
  const Node* near = b.Add(inside, b.Mul(inside, Polynomial(b, b.Mul(inside, inside), kSeries)));
  const Node* z = b.Binary(Op::kMin, size, b.Const(x->dtype(), 4));
  const Node* t = b.Reciprocal(b.Add(b.Mul(z, 0.5), 1.0));
  const Node* exponent = b.Sub(Polynomial(b, t, kChebyshev), b.Mul(z, z));
  const Node* far = b.Add(b.Neg(b.Mul(t, b.Exp(exponent))), 1.0);
  return b.Where(is_near, near, b.Where(Negative(b, x), b.Neg(far), far));
}

Expansion ExpandErf(Builder& b, Operands x, const Attributes&) {
  return x[0]->dtype() == DType::kFloat64 ? ErfOfDouble(b, x[0]) : ErfSingle(b, x[0]);
}

Expansion ExpandAbs(Builder& b, Operands x, const Attributes&) { return Abs(b, x[0]); }

Expansion ExpandSign(Builder& b, Operands x, const Attributes&) {
  const DType dtype = x[0]->dtype();
  const Node* zero = b.Const(dtype, 0);
  // NaN stays NaN, but without x's gradient; -0 becomes 0.
  const Node* rest = ir::IsFloat(dtype) ? b.Where(b.Equal(x[0], zero), zero, b.Detach(x[0])) : zero;
  const Node* positive = b.Where(b.Less(zero, x[0]), b.Const(dtype, 1), rest);
  if (!ir::IsFloat(dtype) && !ir::IsSigned(dtype)) return positive;
  return b.Where(b.Less(x[0], zero), b.Const(dtype, -1), positive);
}

Expansion ExpandSquare(Builder& b, Operands x, const Attributes&) { return b.Mul(x[0], x[0]); }
Expansion ExpandRsqrt(Builder& b, Operands x, const Attributes&) {
  return b.Reciprocal(b.Sqrt(x[0]));
}

Expansion ExpandFloor(Builder& b, Operands x, const Attributes&) {
  return ir::IsFloat(x[0]->dtype()) ? Floor(b, x[0]) : x[0];
}

Expansion ExpandCeil(Builder& b, Operands x, const Attributes&) {
  if (!ir::IsFloat(x[0]->dtype())) return x[0];
  const Node* whole = b.Trunc(x[0]);
  return b.Where(b.Less(whole, x[0]), b.Add(whole, 1.0), whole);
}

Expansion ExpandRound(Builder& b, Operands x, const Attributes&) {
  return ir::IsFloat(x[0]->dtype()) ? Rounded(b, x[0]) : x[0];
}

// The larger (kMax) or smaller (kMin) of the two; at a tie only x has a gradient.
const Node* Clamped(Builder& b, Op op, const Node* x, const Node* bound) {
  const Node* value = b.Binary(op, x, bound);
  if (!ir::IsFloat(value->dtype())) return value;
  const Node* one = b.Const(x->dtype(), 1);
  const Node* zero = b.Const(x->dtype(), 0);
  const bool is_lowest = op == Op::kMax;
  const Node* beyond = is_lowest ? b.Less(x, bound) : b.Less(bound, x);
  const Node* inside = is_lowest ? b.Less(bound, x) : b.Less(x, bound);
  const Node* within = b.Binary(Op::kOr, inside, b.Equal(x, bound));
  value = b.WithDerivative(b.Detach(value), x, b.Where(within, one, zero));
  return b.WithDerivative(value, bound, b.Where(beyond, one, zero));
}
const Node* ClampMin(Builder& b, const Node* x, const Node* bound) {
  return Clamped(b, Op::kMax, x, bound);
}
const Node* ClampMax(Builder& b, const Node* x, const Node* bound) {
  return Clamped(b, Op::kMin, x, bound);
}

Expansion ExpandClip(Builder& b, Operands x, const Attributes& attributes) {
  const Node* low = b.Const(x[0]->dtype(), FloatOf(attributes, "min"));
  const Node* high = b.Const(x[0]->dtype(), FloatOf(attributes, "max"));
  return ClampMax(b, ClampMin(b, x[0], low), high);
}

// Returns (a - rest) / divisor. Where the difference may exceed the dtype's largest number, divides
// half of it and doubles the quotient.
const Node* WithoutRest(Builder& b, const Node* a, const Node* rest, const Node* divisor) {
  const DType dtype = a->dtype();
  const Node* half_of_largest = b.Const(dtype, dtype == DType::kFloat64 ? 0x1p1022 : 0x1p126);
  const Node* may_overflow = b.Not(b.Less(Abs(b, a), half_of_largest));
  const Node* share = b.Where(may_overflow, b.Const(dtype, 0.5), b.Const(dtype, 1));
  const Node* difference = b.Sub(b.Mul(a, share), b.Mul(rest, share));
  return b.Div(b.Div(difference, divisor), share);
}

// (a - mod(a, b)) / b is a whole number except for its rounding, while a / b may be rounded up to a
// whole number that is too large. A zero divisor gives a / b; an infinite one 0, or -1 for a
// negative quotient. A quotient of 0 has the sign of a / b.
Expansion ExpandFloorDivide(Builder& b, Operands x, const Attributes&) {
  if (!ir::IsFloat(x[0]->dtype())) return b.Binary(Op::kIDiv, x[0], x[1]);
  const DType dtype = x[0]->dtype();
  const Node* zero = b.Const(dtype, 0);
  const Node* infinity = b.Const(dtype, std::numeric_limits<double>::infinity());
  const Node* rest = b.Binary(Op::kMod, x[0], x[1]);
  const Node* ratio = b.Div(x[0], x[1]);
  const Node* usual = Rounded(b, WithoutRest(b, x[0], rest, x[1]));
  const Node* below = b.Where(IsNan(b, rest), rest, b.Const(dtype, -1));
  const Node* by_infinity = b.Where(b.Equal(rest, x[0]), zero, below);
  const Node* quotient = b.Where(b.Equal(Abs(b, x[1]), infinity), by_infinity, usual);
  const Node* signed_zero = b.Where(SignBit(b, ratio), b.Const(dtype, -0.0), zero);
  quotient = b.Where(b.Equal(quotient, zero), signed_zero, quotient);
  return b.Where(b.Equal(x[1], zero), ratio, quotient);
}

Expansion ExpandRemainder(Builder& b, Operands x, const Attributes&) {
  return b.Binary(Op::kMod, x[0], x[1]);
}

OpDef Clip() {
  OpDef row = Composite("clip", {"x"}, DTypeRule::kSame, DTypeClass::kNumeric, ExpandClip,
                        "x held between min and max, or max where that is less than min; the "
                        "gradient is 1 on both ends");
  row.attributes = {OptionalFloat("min", -kInfinity), OptionalFloat("max", kInfinity)};
  return row;
}

OpDef Broadcasting(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, DTypeRule::kPromote, DTypeClass::kNumeric, expand, doc);
  row.shape_rule = kBroadcastShape;
  return row;
}

}  // namespace

const Node* Polynomial(Builder& b, const Node* x, absl::Span<const double> coefficients) {
  const Node* sum = b.FullLike(x, coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) {
    sum = b.Add(b.Mul(sum, x), coefficient);
  }
  return sum;
}

const Node* Floor(Builder& b, const Node* x) {
  const Node* whole = b.Trunc(x);
  return b.Where(b.Less(x, whole), b.Add(whole, -1.0), whole);
}

// Adjusts trunc(x), which has x's sign: a small negative x rounds to -0.
const Node* Rounded(Builder& b, const Node* x) {
  const DType dtype = x->dtype();
  const Node* whole = b.Trunc(x);
  const Node* rest = Abs(b, b.Sub(x, whole));  // exact; NaN for infinities, which are kept
  const Node* half = b.Const(dtype, 0.5);
  const Node* half_of_whole = b.Mul(whole, 0.5);
  const Node* odd = b.Binary(Op::kCmpNe, half_of_whole, b.Trunc(half_of_whole));
  const Node* tie = b.Binary(Op::kAnd, b.Equal(rest, half), odd);
  const Node* one = b.Where(Negative(b, x), b.Const(dtype, -1), b.Const(dtype, 1));
  const Node* away = b.Binary(Op::kOr, b.Less(half, rest), tie);
  return b.Where(away, b.Add(whole, one), whole);
}

const Node* IsNan(Builder& b, const Node* x) { return b.Binary(Op::kCmpNe, x, x); }

std::vector<OpDef> MathComposites() {
  constexpr auto kToFloat = DTypeRule::kPromoteFloat;
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kAny = DTypeClass::kAny;
  constexpr auto kNumeric = DTypeClass::kNumeric;
  return {
      Composite("exp", {"x"}, kToFloat, kAny, ExpandExp, "e to the x"),
      Composite("log", {"x"}, kToFloat, kAny, ExpandLog, "The natural logarithm"),
      Composite("cos", {"x"}, kToFloat, kAny, ExpandCos, "The cosine of x in radians"),
      Composite("tan", {"x"}, kToFloat, kAny, ExpandTan, "The tangent of x in radians"),
      Composite("tanh", {"x"}, kToFloat, kAny, ExpandTanh, "The hyperbolic tangent"),
      Composite("erf", {"x"}, kToFloat, kAny, ExpandErf, "The error function"),
      Composite("abs", {"x"}, kSame, kNumeric, ExpandAbs, "|x|; its gradient at 0 is 0"),
      Composite("sign", {"x"}, kSame, kNumeric, ExpandSign, "-1, 0 or 1; NaN for NaN"),
      Composite("square", {"x"}, kSame, kNumeric, ExpandSquare, "x * x"),
      Composite("rsqrt", {"x"}, kToFloat, kAny, ExpandRsqrt, "1 / sqrt(x)"),
      Composite("floor", {"x"}, kSame, kNumeric, ExpandFloor,
                "The next whole number below or at x"),
      Composite("ceil", {"x"}, kSame, kNumeric, ExpandCeil, "The next whole number above or at x"),
      Composite("round", {"x"}, kSame, kNumeric, ExpandRound,
                "The nearest whole number; halves go to the even one"),
      Clip(),
      Broadcasting("clamp_min", ExpandBinary<ClampMin>,
                   "The larger of a and b; where they are equal the gradient is a's"),
      Broadcasting("clamp_max", ExpandBinary<ClampMax>,
                   "The smaller of a and b; where they are equal the gradient is a's"),
      Broadcasting("floor_divide", ExpandFloorDivide,
                   "a / b rounded down; of integers idiv, 0 where b is 0"),
      Broadcasting("remainder", ExpandRemainder, "mod: a - floor(a / b) * b with b's sign"),
  };
}

}  // namespace kiln::ops
