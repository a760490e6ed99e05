// Elementwise functions made of primitives.
#include <array>
#include <limits>
#include <numbers>

#include "compiler/ops/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

// coefficients[0] * x^n + … + coefficients[n], by Horner's rule.
const Node* Polynomial(Builder& b, const Node* x, absl::Span<const double> coefficients) {
  const Node* sum = b.FullLike(x, coefficients[0]);
  for (const double coefficient : coefficients.subspan(1)) {
    sum = b.Add(b.Mul(sum, x), coefficient);
  }
  return sum;
}

const Node* Negative(Builder& b, const Node* x) { return b.Less(x, b.Const(x->dtype(), 0)); }

Expansion ExpandExp(Builder& b, Operands x, const Attributes&) { return b.Exp(x[0]); }
Expansion ExpandLog(Builder& b, Operands x, const Attributes&) { return b.Log(x[0]); }
Expansion ExpandCos(Builder& b, Operands x, const Attributes&) { return b.Cos(x[0]); }
Expansion ExpandTan(Builder& b, Operands x, const Attributes&) {
  return b.Div(b.Sin(x[0]), b.Cos(x[0]));
}

// Near 0, where 2 sigmoid(2x) - 1 cancels, the Taylor series up to x^9 takes over; it is good to
// float32's precision.
Expansion ExpandTanh(Builder& b, Operands x, const Attributes&) {
  static constexpr std::array<double, 5> kSeries = {62.0 / 2835, -17.0 / 315, 2.0 / 15, -1.0 / 3,
                                                    1.0};
  const Node* far = b.Add(b.Mul(Sigmoid(b, b.Mul(x[0], 2.0)), 2.0), -1.0);
  if (x[0]->dtype() == DType::kFloat64) return far;
  const Node* near = b.Mul(x[0], Polynomial(b, b.Mul(x[0], x[0]), kSeries));
  return b.Where(b.Less(Abs(b, x[0]), b.Const(x[0]->dtype(), 0.25)), near, far);
}

// W. J. Cody style rational approximation on [-4, 4], beyond which erf is 1 in float32; as in XLA
// and Eigen.
const Node* ErfSingle(Builder& b, const Node* x) {
  static constexpr std::array<double, 7> kNumerator = {
      -2.72614225801306e-10, 2.77068142495902e-08,  -2.10102402082508e-06, -5.69250639462346e-05,
      -7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02};
  static constexpr std::array<double, 5> kDenominator = {
      -1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03, -7.37332916720468e-03,
      -1.42647390514189e-02};
  const Node* limit = b.Const(x->dtype(), 4);
  const Node* inside = b.Binary(Op::kMin, b.Binary(Op::kMax, x, b.Neg(limit)), limit);
  const Node* square = b.Mul(inside, inside);
  return b.Mul(inside,
               b.Div(Polynomial(b, square, kNumerator), Polynomial(b, square, kDenominator)));
}

// Chebyshev expansion of erfc, fractional error 1.2e-16: Press et al., Numerical Recipes, 3rd
// edition, 6.2.2.
const Node* ErfDouble(Builder& b, const Node* x) {
  static constexpr std::array<double, 28> kChebyshev = {-1.3026537197817094,
                                                        6.4196979235649026e-1,
                                                        1.9476473204185836e-2,
                                                        -9.561514786808631e-3,
                                                        -9.46595344482036e-4,
                                                        3.66839497852761e-4,
                                                        4.2523324806907e-5,
                                                        -2.0278578112534e-5,
                                                        -1.624290004647e-6,
                                                        1.303655835580e-6,
                                                        1.5626441722e-8,
                                                        -8.5238095915e-8,
                                                        6.529054439e-9,
                                                        5.059343495e-9,
                                                        -9.91364156e-10,
                                                        -2.27365122e-10,
                                                        9.6467911e-11,
                                                        2.394038e-12,
                                                        -6.886027e-12,
                                                        8.94487e-13,
                                                        3.13092e-13,
                                                        -1.12708e-13,
                                                        3.81e-16,
                                                        7.106e-15,
                                                        -1.523e-15,
                                                        -9.4e-17,
                                                        1.21e-16,
                                                        -2.8e-17};
  const Node* z = Abs(b, x);
  const Node* t = b.Reciprocal(b.Add(b.Mul(z, 0.5), 1.0));
  const Node* ty = b.Add(b.Mul(t, 4.0), -2.0);
  const Node* d = b.FullLike(x, 0);
  const Node* dd = d;
  for (size_t j = kChebyshev.size() - 1; j > 0; --j) {
    const Node* next = b.Add(b.Sub(b.Mul(ty, d), dd), kChebyshev[j]);
    dd = d;
    d = next;
  }
  const Node* series = b.Sub(b.Mul(b.Add(b.Mul(ty, d), kChebyshev[0]), 0.5), dd);
  const Node* erfc = b.Mul(t, b.Exp(b.Sub(series, b.Mul(z, z))));
  return b.Where(Negative(b, x), b.Add(erfc, -1.0), b.Add(b.Neg(erfc), 1.0));
}

Expansion ExpandErf(Builder& b, Operands x, const Attributes&) {
  return x[0]->dtype() == DType::kFloat64 ? ErfDouble(b, x[0]) : ErfSingle(b, x[0]);
}

Expansion ExpandAbs(Builder& b, Operands x, const Attributes&) { return Abs(b, x[0]); }

Expansion ExpandSign(Builder& b, Operands x, const Attributes&) {
  const DType dtype = x[0]->dtype();
  const Node* zero = b.Const(dtype, 0);
  const Node* positive = b.Where(b.Less(zero, x[0]), b.Const(dtype, 1), zero);
  if (!ir::IsFloat(dtype) && !ir::IsSigned(dtype)) return positive;
  return b.Where(b.Less(x[0], zero), b.Const(dtype, -1), positive);
}

Expansion ExpandSquare(Builder& b, Operands x, const Attributes&) { return b.Mul(x[0], x[0]); }
Expansion ExpandRsqrt(Builder& b, Operands x, const Attributes&) {
  return b.Reciprocal(b.Sqrt(x[0]));
}

Expansion ExpandFloor(Builder& b, Operands x, const Attributes&) { return Floor(b, x[0]); }

Expansion ExpandCeil(Builder& b, Operands x, const Attributes&) {
  const Node* whole = b.Trunc(x[0]);
  return b.Where(b.Less(whole, x[0]), b.Add(whole, 1.0), whole);
}

// To the nearest whole number; a half goes to the even one.
Expansion ExpandRound(Builder& b, Operands x, const Attributes&) {
  const Node* below = Floor(b, x[0]);
  const Node* rest = b.Sub(x[0], below);  // exact
  const Node* half = b.Const(x[0]->dtype(), 0.5);
  const Node* odd = b.Sub(below, b.Mul(Floor(b, b.Mul(below, 0.5)), 2.0));
  const Node* at_half = b.Add(below, odd);
  return b.Where(b.Less(rest, half), below,
                 b.Where(b.Less(half, rest), b.Add(below, 1.0), at_half));
}

Expansion ExpandClip(Builder& b, Operands x, const Attributes& attributes) {
  const Node* low = b.Const(x[0]->dtype(), FloatOf(attributes, "min"));
  const Node* high = b.Const(x[0]->dtype(), FloatOf(attributes, "max"));
  return b.Where(b.Less(x[0], low), low, b.Where(b.Less(high, x[0]), high, x[0]));
}

Expansion ExpandFloorDivide(Builder& b, Operands x, const Attributes&) {
  if (!ir::IsFloat(x[0]->dtype())) return b.Binary(Op::kIDiv, x[0], x[1]);
  return Floor(b, b.Div(x[0], x[1]));
}

Expansion ExpandRemainder(Builder& b, Operands x, const Attributes&) {
  if (!ir::IsFloat(x[0]->dtype())) return b.Binary(Op::kMod, x[0], x[1]);
  return b.Sub(x[0], b.Mul(Floor(b, b.Div(x[0], x[1])), x[1]));
}

OpDef Clip() {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  OpDef row = Composite("clip", {"x"}, DTypeRule::kSame, DTypeClass::kNumeric, ExpandClip,
                        "x held between min and max; the gradient is 1 on both ends");
  row.attributes = {OptionalFloat("min", -kInfinity), OptionalFloat("max", kInfinity)};
  return row;
}

OpDef Broadcasting(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, DTypeRule::kPromote, DTypeClass::kNumeric, expand, doc);
  row.shape_rule = ShapeRule::kBroadcast;
  return row;
}

}  // namespace

// Equal to its negative at 0, so that maximum's tie makes the gradient 0 there.
const Node* Abs(Builder& b, const Node* x) {
  if (!ir::IsFloat(x->dtype()) && !ir::IsSigned(x->dtype())) return x;
  return b.Binary(Op::kMax, x, b.Neg(x));
}

const Node* Floor(Builder& b, const Node* x) {
  const Node* whole = b.Trunc(x);
  return b.Where(b.Less(x, whole), b.Add(whole, -1.0), whole);
}

const Node* IsNan(Builder& b, const Node* x) { return b.Binary(Op::kCmpNe, x, x); }

std::vector<OpDef> MathComposites() {
  constexpr auto kToFloat = DTypeRule::kPromoteFloat;
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kAny = DTypeClass::kAny;
  constexpr auto kNumeric = DTypeClass::kNumeric;
  constexpr auto kFloat = DTypeClass::kFloat;
  return {
      Composite("exp", {"x"}, kToFloat, kAny, ExpandExp, "e to the x"),
      Composite("log", {"x"}, kToFloat, kAny, ExpandLog, "The natural logarithm"),
      Composite("cos", {"x"}, kToFloat, kAny, ExpandCos, "The cosine of x in radians"),
      Composite("tan", {"x"}, kToFloat, kAny, ExpandTan, "The tangent of x in radians"),
      Composite("tanh", {"x"}, kToFloat, kAny, ExpandTanh, "The hyperbolic tangent"),
      Composite("erf", {"x"}, kToFloat, kAny, ExpandErf, "The error function"),
      Composite("abs", {"x"}, kSame, kNumeric, ExpandAbs, "|x|; its gradient at 0 is 0"),
      Composite("sign", {"x"}, kSame, kNumeric, ExpandSign, "-1, 0 or 1; 0 for NaN"),
      Composite("square", {"x"}, kSame, kNumeric, ExpandSquare, "x * x"),
      Composite("rsqrt", {"x"}, kToFloat, kAny, ExpandRsqrt, "1 / sqrt(x)"),
      Composite("floor", {"x"}, kSame, kFloat, ExpandFloor, "The next whole number below or at x"),
      Composite("ceil", {"x"}, kSame, kFloat, ExpandCeil, "The next whole number above or at x"),
      Composite("round", {"x"}, kSame, kFloat, ExpandRound,
                "The nearest whole number; halves go to the even one"),
      Clip(),
      Broadcasting("floor_divide", ExpandFloorDivide,
                   "a / b rounded down; of integers idiv, 0 where b is 0"),
      Broadcasting("remainder", ExpandRemainder,
                   "a - floor_divide(a, b) * b: it has b's sign; of integers mod"),
  };
}

}  // namespace kiln::ops
