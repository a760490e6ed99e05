// Inverse trigonometric functions, and lengths and angles in the plane.
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

constexpr double kPi = std::numbers::pi;
// atan on [0, 0.66] (float64) or [0, tan(pi/8)] (float32): S. L. Moshier, Cephes, atan.c and
// atanf.c.
const Node* AtanNear(Builder& b, const Node* x) {
  static constexpr std::array<double, 4> kSingle = {8.05374449538e-2, -1.38776856032e-1,
                                                    1.99777106478e-1, -3.33329491539e-1};
  static constexpr std::array<double, 5> kNumerator = {
      -8.750608600031904122785e-1, -1.615753718733365076637e1, -7.500855792314704667340e1,
      -1.228866684490136173410e2, -6.485021904942025371773e1};
  static constexpr std::array<double, 6> kDenominator = {1.0,
                                                         2.485846490142306297962e1,
                                                         1.650270098316988542046e2,
                                                         4.328810604912902668951e2,
                                                         4.853903996359136964868e2,
                                                         1.945506571482613964425e2};
  const Node* z = b.Mul(x, x);
  const Node* ratio = x->dtype() == DType::kFloat64
                          ? b.Div(Polynomial(b, z, kNumerator), Polynomial(b, z, kDenominator))
                          : Polynomial(b, z, kSingle);
  return b.Add(b.Mul(b.Mul(ratio, z), x), x);
}

// atan of a >= 0, with the angle reduced by 0, pi/4 or pi/2, so that the argument is small.
const Node* AtanOfMagnitude(Builder& b, const Node* a) {
  const bool is_double = a->dtype() == DType::kFloat64;
  const Node* one = b.Const(a->dtype(), 1);
  const Node* zero = b.Const(a->dtype(), 0);
  const Node* far = b.Less(b.Const(a->dtype(), 2.414213562373095048802), a);
  const Node* middle = b.Less(b.Const(a->dtype(), is_double ? 0.66 : 0.4142135623730950), a);
  const Node* turned =
      b.Where(far, b.Neg(b.Reciprocal(a)), b.Where(middle, b.Div(b.Sub(a, one), b.Add(a, one)), a));
  // The rounding errors of pi/2 and pi/4 in the dtype.
  const double lost_half = is_double ? 6.123233995736765886130e-17 : -4.37113900018624283e-8;
  const Node* base = b.Where(far, b.Const(a->dtype(), kPi / 2),
                             b.Where(middle, b.Const(a->dtype(), kPi / 4), zero));
  const Node* lost = b.Where(far, b.Const(a->dtype(), lost_half),
                             b.Where(middle, b.Const(a->dtype(), lost_half / 2), zero));
  return b.Add(base, b.Add(AtanNear(b, turned), lost));
}

const Node* AtanValue(Builder& b, const Node* x) {
  const Node* sign = SignOf(b, x);
  return b.Mul(sign, AtanOfMagnitude(b, b.Mul(x, sign)));
}

// sqrt(1 - x²) without cancellation.
const Node* Cosine(Builder& b, const Node* x) {
  const Node* one = b.Const(x->dtype(), 1);
  return b.Sqrt(b.Mul(b.Sub(one, x), b.Add(x, one)));
}

// Twice the half angle, whose tangent is x / (1 + sqrt(1 - x²)).
const Node* Asin(Builder& b, const Node* x) {
  const Node* cosine = Cosine(b, x);
  const Node* value = b.Mul(AtanValue(b, b.Div(x, b.Add(cosine, 1.0))), 2.0);
  return b.WithDerivative(b.Detach(value), x, b.Reciprocal(cosine));
}

// Twice the half angle, whose tangent is sqrt((1 - x) / (1 + x)).
const Node* Acos(Builder& b, const Node* x) {
  const Node* one = b.Const(x->dtype(), 1);
  const Node* tangent = b.Sqrt(b.Div(b.Sub(one, x), b.Add(x, one)));
  const Node* value = b.Mul(AtanOfMagnitude(b, tangent), 2.0);
  return b.WithDerivative(b.Detach(value), x, b.Neg(b.Reciprocal(Cosine(b, x))));
}

// Returns the smaller magnitude over the larger; 1 where both are infinite, 0 where both are 0.
const Node* RatioOf(Builder& b, const Node* small, const Node* large) {
  const Node* one = b.Const(small->dtype(), 1);
  const Node* zero = b.Const(small->dtype(), 0);
  const Node* both_infinite = b.Equal(small, b.Const(small->dtype(), kInfinity));
  const Node* both_zero = b.Equal(large, zero);
  const Node* usual = b.Div(small, b.Where(both_zero, one, large));
  return b.Where(both_infinite, one, usual);
}

// Both divided by the larger magnitude, so that no square overflows or underflows. Derivatives in
// these terms can be differentiated again: they do not depend on the scale.
struct Scaled {
  const Node* x;
  const Node* y;
  const Node* square;  // of the distance from the origin
  const Node* by;      // the scale; 1 where the magnitude is 0 or infinite
};
Scaled ScaleDown(Builder& b, const Node* x, const Node* y, const Node* large) {
  const Node* has_scale = b.Binary(Op::kAnd, b.Less(b.Const(x->dtype(), 0), large),
                                   b.Less(large, b.Const(x->dtype(), kInfinity)));
  const Node* by = b.Detach(b.Where(has_scale, large, b.Const(x->dtype(), 1)));
  x = b.Div(x, by);
  y = b.Div(y, by);
  return {x, y, b.Add(b.Mul(x, x), b.Mul(y, y)), by};
}

const Node* Hypot(Builder& b, const Node* x, const Node* y) {
  const Node* ax = Abs(b, x);
  const Node* ay = Abs(b, y);
  const Node* large = b.Binary(Op::kMax, ax, ay);
  const Node* ratio = RatioOf(b, b.Binary(Op::kMin, ax, ay), large);
  const Node* infinity = b.Const(x->dtype(), kInfinity);
  // If one side is infinite, so is the result, whatever the other is, even NaN.
  const Node* infinite = b.Binary(Op::kOr, b.Equal(ax, infinity), b.Equal(ay, infinity));
  const Node* value =
      b.Where(infinite, infinity, b.Mul(large, b.Sqrt(b.Add(b.Mul(ratio, ratio), 1.0))));
  // The derivatives are 0 at the origin.
  const Scaled p = ScaleDown(b, x, y, large);
  const Node* origin = b.Equal(large, b.Const(x->dtype(), 0));
  const Node* scale = b.Reciprocal(b.Sqrt(b.Where(origin, b.Const(x->dtype(), 1), p.square)));
  return b.WithDerivative(b.WithDerivative(b.Detach(value), x, b.Mul(p.x, scale)), y,
                          b.Mul(p.y, scale));
}

const Node* Atan2(Builder& b, const Node* y, const Node* x) {
  const Node* ax = Abs(b, x);
  const Node* ay = Abs(b, y);
  const Node* large = b.Binary(Op::kMax, ax, ay);
  const Node* ratio = RatioOf(b, b.Binary(Op::kMin, ax, ay), large);
  const Node* angle = AtanOfMagnitude(b, ratio);
  const Node* right = b.Const(x->dtype(), kPi / 2);
  const Node* straight = b.Const(x->dtype(), kPi);
  angle = b.Where(b.Less(ax, ay), b.Sub(right, angle), angle);
  angle = b.Where(SignBit(b, x), b.Sub(straight, angle), angle);
  const Node* value = b.Mul(SignOf(b, y), angle);
  // The derivatives are 0 at the origin.
  const Scaled p = ScaleDown(b, x, y, large);
  const Node* origin = b.Equal(large, b.Const(x->dtype(), 0));
  const Node* square = b.Where(origin, b.Const(x->dtype(), 1), b.Mul(p.square, p.by));
  return b.WithDerivative(b.WithDerivative(b.Detach(value), y, b.Div(p.x, square)), x,
                          b.Neg(b.Div(p.y, square)));
}

OpDef OfPair(std::string_view name, std::vector<std::string_view> operands, ExpandFn expand,
             std::string_view doc) {
  OpDef row =
      Composite(name, std::move(operands), DTypeRule::kPromoteFloat, DTypeClass::kAny, expand, doc);
  row.shape_rule = kBroadcastShape;
  return row;
}

}  // namespace

const Node* Atan(Builder& b, const Node* x) {
  const Node* slope = b.Reciprocal(b.Add(b.Mul(x, x), 1.0));
  return b.WithDerivative(b.Detach(AtanValue(b, x)), x, slope);
}

std::vector<OpDef> TrigonometricComposites() {
  return {
      FloatFunction("asin", ExpandUnary<Asin>, "The arc sine in radians; NaN outside of [-1, 1]"),
      FloatFunction("acos", ExpandUnary<Acos>, "The arc cosine in radians; NaN outside of [-1, 1]"),
      FloatFunction("atan", ExpandUnary<Atan>, "The arc tangent in radians"),
      OfPair("atan2", {"y", "x"}, ExpandBinary<Atan2>,
             "The angle of the point (x, y) in (-pi, pi], as C's atan2"),
      OfPair("hypot", {"a", "b"}, ExpandBinary<Hypot>,
             "sqrt(a² + b²), without overflow; its gradient at the origin is 0"),
  };
}

}  // namespace kiln::ops
