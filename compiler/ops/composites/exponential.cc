// Exponentials, logarithms and hyperbolic functions that stay accurate near 0, where the plain
// formulas cancel.
//
// Values come from formulas that are accurate to a few units in the last place and hidden from
// autodiff; derivatives are given separately (Builder::WithDerivative).
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

const Node* OnePlus(Builder& b, const Node* x) { return b.Add(x, 1.0); }

// Returns 1/(n + 1)!, …, 1/2!, 1: e^x - 1 is x times the polynomial with these coefficients. The
// callers use enough terms for |x| <= 1/2.
std::vector<double> FactorialSeries(int terms) {
  std::vector<double> series(terms);
  double factorial = 1;
  for (int i = 0; i < terms; ++i) {
    factorial *= i + 1;
    series[terms - 1 - i] = 1 / factorial;
  }
  return series;
}

const Node* Expm1Value(Builder& b, const Node* x) {
  const Node* small = b.Less(Abs(b, x), b.Const(x->dtype(), 0.5));
  const Node* inside = b.Where(small, x, b.Const(x->dtype(), 0));
  const int terms = x->dtype() == DType::kFloat64 ? 16 : 9;
  const Node* near = b.Mul(inside, Polynomial(b, inside, FactorialSeries(terms)));
  return b.Where(small, near, b.Add(b.Exp(x), -1.0));
}

// With u = 1 + x rounded: log(u) + (x - (u - 1)) / u, whose second term corrects the rounding
// (Kahan).
const Node* Log1pValue(Builder& b, const Node* x) {
  const Node* u = OnePlus(b, x);
  const Node* lost = b.Div(b.Sub(x, b.Add(u, -1.0)), u);
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* usual =
      b.Binary(Op::kAnd, b.Less(zero, u), b.Less(u, b.Const(x->dtype(), kInfinity)));
  const Node* logarithm = b.Add(b.Log(u), b.Where(usual, lost, zero));
  return b.Where(b.Equal(x, zero), x, logarithm);  // keeps -0
}

// e^(x/2) and e^(-x/2): their squares overflow only where sinh and cosh do.
struct HalfExponentials {
  const Node* up;
  const Node* down;
};
HalfExponentials ExponentialsOfHalf(Builder& b, const Node* x) {
  const Node* half = Half(b, x);
  return {b.Exp(half), b.Exp(b.Neg(half))};
}

const Node* CoshValue(Builder& b, const Node* x) {
  const auto [up, down] = ExponentialsOfHalf(b, x);
  return b.Add(b.Mul(Half(b, up), up), b.Mul(Half(b, down), down));
}

const Node* SinhValue(Builder& b, const Node* x) {
  const auto [up, down] = ExponentialsOfHalf(b, x);
  const Node* far = b.Sub(b.Mul(Half(b, up), up), b.Mul(Half(b, down), down));
  // With m = e^x - 1, sinh x is (m + m / (m + 1)) / 2.
  const Node* small = b.Less(Abs(b, x), b.Const(x->dtype(), 1));
  const Node* m = Expm1Value(b, b.Where(small, x, b.Const(x->dtype(), 0)));
  const Node* near = Half(b, b.Add(m, b.Div(m, OnePlus(b, m))));
  return b.Where(small, near, far);
}

const Node* Cosh(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(CoshValue(b, x)), x, SinhValue(b, x));
}
const Node* Sinh(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(SinhValue(b, x)), x, CoshValue(b, x));
}

// Returns log(x) + log(2) where the square of x would overflow.
const Node* WhereHuge(Builder& b, const Node* magnitude, const Node* usual) {
  const double huge = magnitude->dtype() == DType::kFloat64 ? 1e150 : 1e18;
  const Node* is_huge = b.Less(b.Const(magnitude->dtype(), huge), magnitude);
  return b.Where(is_huge, b.Add(b.Log(magnitude), std::numbers::ln2), usual);
}

const Node* Asinh(Builder& b, const Node* x) {
  const Node* sign = SignOf(b, x);
  const Node* a = b.Mul(x, sign);
  const Node* root = b.Sqrt(OnePlus(b, b.Mul(a, a)));
  // log(a + root) with root - 1 written as a² / (1 + root), which does not cancel.
  const Node* usual = Log1p(b, b.Add(a, b.Mul(a, b.Div(a, OnePlus(b, root)))));
  const Node* value = b.Mul(sign, WhereHuge(b, a, usual));
  const Node* slope = b.Reciprocal(b.Sqrt(OnePlus(b, b.Mul(x, x))));
  return b.WithDerivative(b.Detach(value), x, slope);
}

const Node* Acosh(Builder& b, const Node* x) {
  const Node* t = b.Add(x, -1.0);
  // Two roots instead of the root of the product: below -1 the product is positive again, but acosh
  // is NaN.
  const Node* root = b.Mul(b.Sqrt(t), b.Sqrt(OnePlus(b, x)));
  const Node* value = WhereHuge(b, x, Log1p(b, b.Add(t, root)));
  return b.WithDerivative(b.Detach(value), x, b.Reciprocal(root));
}

const Node* Atanh(Builder& b, const Node* x) {
  const Node* sign = SignOf(b, x);
  const Node* a = b.Mul(x, sign);
  const Node* one = b.Const(x->dtype(), 1);
  // log((1 + a) / (1 - a)) as log1p(2 a / (1 - a)), exact near 0.
  const Node* ratio = b.Div(b.Mul(a, 2.0), b.Sub(one, a));
  const Node* value = b.Mul(b.Mul(sign, 0.5), Log1p(b, ratio));
  const Node* slope = b.Reciprocal(b.Mul(b.Sub(one, x), OnePlus(b, x)));
  return b.WithDerivative(b.Detach(value), x, slope);
}

const Node* Log10(Builder& b, const Node* x) {
  return b.Mul(b.Log2(x), std::numbers::ln2 / std::numbers::ln10);
}

// Returns the larger plus log(1 + e^-distance), or plus log2(1 + 2^-distance). For equal infinities
// the distance is defined as 0.
const Node* AddLogarithms(Builder& b, const Node* x, const Node* y, bool binary) {
  const Node* distance = Abs(b, b.Sub(x, y));
  distance = b.Where(b.Equal(x, y), b.Const(x->dtype(), 0), distance);
  const Node* log_of_2 = b.Const(x->dtype(), std::numbers::ln2);
  const Node* small = b.Exp(b.Neg(binary ? b.Mul(distance, log_of_2) : distance));
  const Node* correction = Log1p(b, small);
  if (binary) correction = b.Mul(correction, std::numbers::log2e);
  const Node* value = b.Add(b.Binary(Op::kMax, x, y), correction);
  // The derivatives are each operand's share of the sum, 1 / (1 + e^(y - x)) and the rest.
  const Node* difference = b.Where(b.Equal(x, y), b.Const(x->dtype(), 0), b.Sub(y, x));
  if (binary) difference = b.Mul(difference, log_of_2);
  const Node* of_x = Sigmoid(b, b.Neg(difference));
  const Node* of_y = Sigmoid(b, difference);
  return b.WithDerivative(b.WithDerivative(b.Detach(value), x, of_x), y, of_y);
}
const Node* LogAddExp2(Builder& b, const Node* x, const Node* y) {
  return AddLogarithms(b, x, y, true);
}

OpDef OfPair(std::string_view name, ExpandFn expand, std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.shape_rule = kBroadcastShape;
  return row;
}

}  // namespace

const Node* Log1p(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(Log1pValue(b, x)), x, b.Reciprocal(OnePlus(b, x)));
}

const Node* Expm1(Builder& b, const Node* x) {
  return b.WithDerivative(b.Detach(Expm1Value(b, x)), x, b.Exp(x));
}

const Node* LogAddExp(Builder& b, const Node* x, const Node* y) {
  return AddLogarithms(b, x, y, false);
}

std::vector<OpDef> ExponentialComposites() {
  return {
      FloatFunction("expm1", ExpandUnary<Expm1>, "e to the x, less 1; exact near 0"),
      FloatFunction("log1p", ExpandUnary<Log1p>, "The natural logarithm of 1 + x; exact near 0"),
      FloatFunction("log10", ExpandUnary<Log10>, "The decimal logarithm"),
      FloatFunction("sinh", ExpandUnary<Sinh>, "The hyperbolic sine"),
      FloatFunction("cosh", ExpandUnary<Cosh>, "The hyperbolic cosine"),
      FloatFunction("asinh", ExpandUnary<Asinh>, "The inverse hyperbolic sine"),
      FloatFunction("acosh", ExpandUnary<Acosh>, "The inverse hyperbolic cosine; NaN below 1"),
      FloatFunction("atanh", ExpandUnary<Atanh>,
                    "The inverse hyperbolic tangent; NaN outside of [-1, 1]"),
      OfPair("logaddexp", ExpandBinary<LogAddExp>, "log(exp(a) + exp(b)), without overflow"),
      OfPair("logaddexp2", ExpandBinary<LogAddExp2>, "log2(2^a + 2^b), without overflow"),
  };
}

}  // namespace kiln::ops
