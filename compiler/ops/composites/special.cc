// Special functions. Accurate formulas are long and differentiate badly, so derivatives are given
// separately (Builder::WithDerivative); float32 is computed in float64 and rounded once.
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/ops/composites/composite.h"
#include "compiler/ops/rows.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

const Node* Number(Builder& b, double value) { return b.Const(DType::kFloat64, value); }
const Node* IsBelow(Builder& b, const Node* x, double value) { return b.Less(x, Number(b, value)); }

template <const Node* (*Function)(Builder&, const Node*)>
Expansion ExpandDouble(Builder& b, Operands x, const Attributes&) {
  return b.Cast(Function(b, b.Cast(x[0], DType::kFloat64)), x[0]->dtype());
}

// 2 / sqrt(pi) e^-x²: erf's derivative.
const Node* Bell(Builder& b, const Node* x) {
  return b.Mul(b.Exp(b.Neg(b.Mul(x, x))), 2 * std::numbers::inv_sqrtpi);
}

// Returns e^-x² for x up to 27: x² is split in two parts, the first of which is exact, so that its
// rounding error is not amplified by the exponential.
const Node* ExpOfMinusSquare(Builder& b, const Node* x) {
  const Node* mask = b.ConstInt(DType::kInt64, -(int64_t{1} << 32));
  const Node* bits = b.Binary(Op::kAnd, b.Bitcast(x, DType::kInt64), mask);
  const Node* high = b.Bitcast(bits, DType::kFloat64);
  const Node* rest = b.Mul(b.Sub(x, high), b.Add(x, high));
  return b.Mul(b.Exp(b.Neg(b.Mul(high, high))), b.Exp(b.Neg(rest)));
}

// Beyond 27 erfc is below the smallest float64, so magnitudes are clamped.
const Node* Magnitude(Builder& b, const Node* x) {
  return b.Binary(Op::kMin, Abs(b, x), Number(b, 27.5));
}

// erfc of x >= 0 by its Chebyshev expansion, fractional error 1.2e-16: Press et al., Numerical
// Recipes, 3rd edition, 6.2.2.
const Node* ErfcOfMagnitude(Builder& b, const Node* x) {
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
  const Node* t = b.Reciprocal(b.Add(b.Mul(x, 0.5), 1.0));
  const Node* ty = b.Add(b.Mul(t, 4.0), -2.0);
  const Node* d = b.FullLike(x, 0);
  const Node* dd = d;
  for (size_t j = kChebyshev.size() - 1; j > 0; --j) {
    const Node* next = b.Add(b.Sub(b.Mul(ty, d), dd), kChebyshev[j]);
    dd = d;
    d = next;
  }
  const Node* series = b.Sub(b.Mul(b.Add(b.Mul(ty, d), kChebyshev[0]), 0.5), dd);
  return b.Mul(b.Mul(t, b.Exp(series)), ExpOfMinusSquare(b, x));
}

// The Taylor series for |x| <= 1/2: 2/sqrt(pi) sum (-1)^n x^(2n+1) / (n! (2n + 1)).
const Node* ErfNear(Builder& b, const Node* x) {
  std::vector<double> series;
  double factorial = 1;
  for (int n = 0; n < 14; ++n) {
    if (n > 0) factorial *= -n;
    series.insert(series.begin(), 2 * std::numbers::inv_sqrtpi / (factorial * (2 * n + 1)));
  }
  return b.Mul(x, Polynomial(b, b.Mul(x, x), series));
}

const Node* ErfValue(Builder& b, const Node* x) {
  const Node* a = Magnitude(b, x);
  const Node* far = b.Mul(SignOf(b, x), b.Sub(Number(b, 1), ErfcOfMagnitude(b, a)));
  return b.Where(IsBelow(b, a, 0.5), ErfNear(b, x), far);
}

const Node* ErfcValue(Builder& b, const Node* x) {
  const Node* a = Magnitude(b, x);
  const Node* tail = ErfcOfMagnitude(b, a);
  const Node* far = b.Where(IsBelow(b, x, 0), b.Sub(Number(b, 2), tail), tail);
  return b.Where(IsBelow(b, a, 0.5), b.Sub(Number(b, 1), ErfNear(b, x)), far);
}

const Node* Erfc(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(ErfcValue(b, x)), x, b.Neg(Bell(b, x)));
}

// M. Giles, "Approximating the erfinv function", 2010, single precision; closer to 1, where only
// float64 has numbers, erfc's first asymptotic term. Then two Newton steps follow, each of which
// doubles the digits. They compare erfc where erf is too close to 1.
const Node* ErfinvStart(Builder& b, const Node* x) {
  static constexpr std::array<double, 9> kCentral = {
      2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
      -0.00125372503, -0.00417768164, 0.246640727,    1.50140941};
  static constexpr std::array<double, 9> kTail = {-0.000200214257, 0.000100950558, 0.00134934322,
                                                  -0.00367342844,  0.00573950773,  -0.0076224613,
                                                  0.00943887047,   1.00167406,     2.83297682};
  const Node* one = Number(b, 1);
  const Node* w = b.Neg(b.Log(b.Mul(b.Sub(one, x), b.Add(one, x))));
  const Node* central = Polynomial(b, b.Add(w, -2.5), kCentral);
  const Node* tail = Polynomial(b, b.Add(b.Sqrt(w), -3.0), kTail);
  const Node* near = b.Mul(x, b.Where(IsBelow(b, w, 5), central, tail));
  const Node* large = b.Where(IsBelow(b, w, 16), Number(b, 16), w);
  const Node* logarithm = b.Log(b.Mul(large, std::numbers::pi / 4));
  const Node* nearest = b.Sqrt(b.Sub(large, b.Mul(logarithm, 0.5)));
  return b.Where(IsBelow(b, w, 16), near, nearest);
}

const Node* Erfinv(Builder& b, const Node* x) {
  const Node* sign = SignOf(b, x);
  const Node* a = b.Mul(x, sign);
  const Node* one = Number(b, 1);
  const Node* inside = b.Where(b.Less(a, one), a, Number(b, 0));
  const Node* y = ErfinvStart(b, inside);
  for (int step = 0; step < 2; ++step) {
    const Node* surplus = b.Where(IsBelow(b, y, 0.5), b.Sub(ErfNear(b, y), inside),
                                  b.Sub(b.Sub(one, inside), ErfcValue(b, y)));
    // Halley's form of the step: Newton's step divided by (1 + y times the step).
    const Node* newton = b.Div(surplus, Bell(b, y));
    y = b.Sub(y, b.Div(newton, b.Add(b.Mul(newton, y), 1.0)));
  }
  const Node* edge = b.Where(b.Equal(a, one), Number(b, kInfinity),
                             Number(b, std::numeric_limits<double>::quiet_NaN()));
  const Node* value = b.Mul(sign, b.Where(b.Less(a, one), y, edge));
  // 1 over erf's derivative at the value. The value is not detached here, so that it can be
  // differentiated again, through the steps.
  return b.WithDerivative(b.Detach(value), x, b.Reciprocal(Bell(b, value)));
}

// Lanczos' approximation with g = 607/128 and 15 terms (P. Godfrey, 2001) for x >= 1/2.
const Node* LgammaAbove(Builder& b, const Node* x) {
  static constexpr std::array<double, 15> kTerms = {
      0.99999999999999709182,     57.156235665862923517,      -59.597960355475491248,
      14.136097974741747174,      -0.49191381609762019978,    0.33994649984811888699e-4,
      0.46523628927048575665e-4,  -0.98374475304879564677e-4, 0.15808870322491248884e-3,
      -0.21026444172410488319e-3, 0.21743961811521264320e-3,  -0.16431810653676389022e-3,
      0.84418223983852743293e-4,  -0.26190838401581408670e-4, 0.36899182659531622704e-5};
  const Node* z = b.Add(x, -1.0);
  const Node* sum = b.FullLike(x, kTerms[0]);
  for (size_t i = 1; i < kTerms.size(); ++i) {
    const double shift = static_cast<double>(i);
    sum = b.Add(sum, b.Div(Number(b, kTerms[i]), b.Add(z, shift)));
  }
  const Node* t = b.Add(z, 607.0 / 128 + 0.5);
  const Node* power = b.Mul(b.Add(z, 0.5), b.Add(b.Log(t), -1.0));
  // (z + 1/2) log t - t, written so that two large numbers do not cancel: t is z + 1/2 + g.
  const double constant = 0.91893853320467274178 - 607.0 / 128;
  return b.Add(b.Add(power, b.Log(sum)), constant);
}

// Returns pi times the distance to the nearest whole number, which is a pole of these functions if
// it is not positive; they are large near poles.
const Node* AngleFromPole(Builder& b, const Node* x) {
  return b.Mul(b.Sub(x, Rounded(b, x)), std::numbers::pi);
}

// The asymptotic series of the derivative of log gamma at x + 8, minus the recurrence terms from x
// to x + 8.
const Node* DigammaAbove(Builder& b, const Node* x) {
  static constexpr std::array<double, 7> kBernoulli = {
      1.0 / 12, -691.0 / 32760, 1.0 / 132, -1.0 / 240, 1.0 / 252, -1.0 / 120, 1.0 / 12};
  constexpr int kSteps = 8;
  const Node* steps = b.Reciprocal(x);
  for (int i = 1; i < kSteps; ++i) {
    steps = b.Add(steps, b.Reciprocal(b.Add(x, static_cast<double>(i))));
  }
  const Node* inverse = b.Reciprocal(b.Add(x, static_cast<double>(kSteps)));
  const Node* z = b.Mul(inverse, inverse);
  const Node* series = b.Mul(z, Polynomial(b, z, kBernoulli));
  const Node* leading = b.Sub(b.Log(b.Add(x, static_cast<double>(kSteps))), b.Mul(inverse, 0.5));
  return b.Sub(b.Sub(leading, series), steps);
}

// Below 1/2 by reflection: psi(1 - x) - pi / tan(pi x). At 0 it is -1 / x, like SciPy's. It is NaN
// at the poles -1, -2, …, where its sign depends on the side.
const Node* Digamma(Builder& b, const Node* x) {
  const Node* reflected = IsBelow(b, x, 0.5);
  const Node* above = DigammaAbove(b, b.Where(reflected, b.Sub(Number(b, 1), x), x));
  const Node* safe = b.Where(reflected, AngleFromPole(b, x), Number(b, 1));
  const Node* cotangent = b.Mul(b.Div(b.Cos(safe), b.Sin(safe)), std::numbers::pi);
  const Node* pole = b.Binary(Op::kAnd, b.Equal(x, Floor(b, x)), b.Not(b.Less(Number(b, 0), x)));
  const Node* value = b.Where(reflected, b.Sub(above, cotangent), above);
  value = b.Where(pole, Number(b, std::numeric_limits<double>::quiet_NaN()), value);
  return b.Where(b.Equal(x, Number(b, 0)), b.Neg(b.Reciprocal(x)), value);
}

const Node* Lgamma(Builder& b, const Node* x) {
  const Node* reflected = IsBelow(b, x, 0.5);
  const Node* above = LgammaAbove(b, b.Where(reflected, b.Sub(Number(b, 1), x), x));
  const Node* sine = Abs(b, b.Sin(b.Where(reflected, AngleFromPole(b, x), Number(b, 1))));
  const Node* below = b.Sub(b.Sub(Number(b, std::log(std::numbers::pi)), b.Log(sine)), above);
  const Node* pole = b.Binary(Op::kAnd, b.Equal(x, Floor(b, x)), b.Not(b.Less(Number(b, 0), x)));
  const Node* usual = b.Where(reflected, below, above);
  const Node* infinite = b.Equal(Abs(b, x), Number(b, kInfinity));
  const Node* value = b.Where(b.Binary(Op::kOr, pole, infinite), Number(b, kInfinity), usual);
  return b.WithDerivative(b.Detach(value), x, Digamma(b, x));
}

// Uses logarithms, then one Newton step, which removes their error.
const Node* Cbrt(Builder& b, const Node* x) {
  const Node* sign = SignOf(b, x);
  const Node* a = b.Mul(x, sign);
  const Node* usual = b.Binary(Op::kAnd, b.Less(Number(b, 0), a), IsBelow(b, a, kInfinity));
  const Node* safe = b.Where(usual, a, Number(b, 1));
  const Node* y = b.Exp2(b.Mul(b.Log2(safe), 1.0 / 3));
  y = b.Sub(y, b.Mul(b.Sub(y, b.Div(safe, b.Mul(y, y))), 1.0 / 3));
  const Node* value = b.Where(usual, b.Mul(sign, y), x);
  const Node* slope = b.Mul(b.Reciprocal(b.Mul(value, value)), 1.0 / 3);
  return b.WithDerivative(b.Detach(value), x, slope);
}

}  // namespace

const Node* ErfOfDouble(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(ErfValue(b, x)), x, Bell(b, x));
}

std::vector<OpDef> SpecialComposites() {
  return {
      FloatFunction("erfc", ExpandDouble<Erfc>,
                    "1 - erf(x), with all its digits where it is small"),
      FloatFunction("erfinv", ExpandDouble<Erfinv>,
                    "The inverse of erf; infinite at -1 and 1, NaN beyond"),
      FloatFunction("lgamma", ExpandDouble<Lgamma>,
                    "The logarithm of the gamma function's magnitude"),
      FloatFunction("digamma", ExpandDouble<Digamma>,
                    "The derivative of lgamma; NaN at 0 and the negative integers"),
      FloatFunction("cbrt", ExpandDouble<Cbrt>, "The cube root"),
  };
}

}  // namespace kiln::ops
