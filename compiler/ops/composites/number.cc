// Sign, neighbours, remainders and non-finite values of numbers.
#include <cmath>
#include <limits>

#include "compiler/ir/str_cat.h"
#include "compiler/ops/composites/composite.h"
#include "compiler/ops/promote.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::DType;
using ir::Node;
using ir::Op;

const Node* Bits(Builder& b, const Node* x) {
  return b.Bitcast(x, SignedOfSize(ir::SizeOf(x->dtype())));
}

Expansion ExpandSignBit(Builder& b, Operands x, const Attributes&) { return SignBit(b, x[0]); }

// The gradient is 0 where a is 0, like PyTorch's.
Expansion ExpandCopySign(Builder& b, Operands x, const Attributes&) {
  const Node* zero = b.Const(x[0]->dtype(), 0);
  const Node* turn = b.Mul(SignOf(b, x[0]), SignOf(b, x[1]));
  const Node* slope = b.Where(b.Equal(x[0], zero), zero, turn);
  return b.WithDerivative(b.Detach(b.Mul(x[0], turn)), x[0], slope);
}

// Floats of one sign are ordered like their bits, so the neighbour is the next bit pattern.
Expansion ExpandNextAfter(Builder& b, Operands operands, const Attributes&) {
  const Node* x = operands[0];
  const Node* y = operands[1];
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* bits = Bits(b, x);
  // The next pattern is farther from 0: towards y if y is above a positive x, or below a negative
  // x.
  const Node* away = b.Equal(b.Less(x, y), b.Less(zero, x));
  const Node* step = b.Where(away, b.ConstInt(bits->dtype(), 1), b.ConstInt(bits->dtype(), -1));
  const Node* next = b.Bitcast(b.Add(bits, step), x->dtype());
  // From 0 the next number is the smallest one of y's sign: the pattern after 0 or -0.
  const Node* smallest = b.Bitcast(
      b.Where(b.Less(y, zero), b.Add(b.ConstInt(bits->dtype(), 1), Bits(b, b.FullLike(y, -0.0))),
              b.ConstInt(bits->dtype(), 1)),
      x->dtype());
  const Node* moved = b.Where(b.Equal(x, zero), smallest, next);
  const Node* is_nan = b.Binary(Op::kOr, IsNan(b, x), IsNan(b, y));
  return b.Where(is_nan, b.Add(x, y), b.Where(b.Equal(x, y), y, moved));
}

// The remainder with a's sign, computed from the one with b's sign.
Expansion ExpandFmod(Builder& b, Operands x, const Attributes& attributes) {
  const OpDef& remainder = *FindOp("remainder");
  if (ir::IsFloat(x[0]->dtype())) {
    const Node* sign = SignOf(b, x[0]);
    const Node* divisor = b.Mul(x[1], SignOf(b, x[1]));
    const Expansion rest = remainder.expand(b, {b.Mul(x[0], sign), divisor}, attributes);
    if (!rest.ok()) return rest;
    return b.Mul(sign, *rest);
  }
  const Expansion rest = remainder.expand(b, x, attributes);
  if (!rest.ok() || !ir::IsSigned(x[0]->dtype())) return rest;
  const Node* zero = b.Const(x[0]->dtype(), 0);
  // A nonzero remainder has b's sign; minus b, it has a's.
  const Node* signs_differ = b.Binary(Op::kXor, b.Less(x[0], zero), b.Less(x[1], zero));
  const Node* wrong = b.Binary(Op::kAnd, b.Binary(Op::kCmpNe, *rest, zero), signs_differ);
  return b.Where(wrong, b.Sub(*rest, x[1]), *rest);
}

Expansion ExpandIsClose(Builder& b, Operands operands, const Attributes& attributes) {
  const Node* x = operands[0];
  const Node* y = operands[1];
  if (!ir::IsFloat(x->dtype())) {
    // The difference of two integers may wrap.
    x = b.Cast(x, DType::kFloat64);
    y = b.Cast(y, DType::kFloat64);
  }
  const Node* allowed =
      b.Add(b.Mul(Abs(b, y), FloatOf(attributes, "rtol")), FloatOf(attributes, "atol"));
  // An infinite b would allow any distance.
  const Node* infinity = b.Const(x->dtype(), std::numeric_limits<double>::infinity());
  const Node* is_near = b.Not(b.Less(allowed, Abs(b, b.Sub(x, y))));
  const Node* finite = b.Binary(Op::kAnd, b.Less(Abs(b, x), infinity), b.Less(Abs(b, y), infinity));
  const Node* close = b.Binary(Op::kOr, b.Equal(x, y), b.Binary(Op::kAnd, finite, is_near));
  if (!BoolOf(attributes, "equal_nan")) return close;
  return b.Binary(Op::kOr, close, b.Binary(Op::kAnd, IsNan(b, x), IsNan(b, y)));
}

Expansion ExpandNanToNum(Builder& b, Operands x, const Attributes& attributes) {
  const DType dtype = x[0]->dtype();
  if (!ir::IsFloat(dtype)) return x[0];
  const double largest = ir::FormatOf(dtype).largest();
  const auto or_largest = [&](double value) {
    return std::abs(value) == kInfinity ? std::copysign(largest, value) : value;
  };
  const Node* infinity = b.Const(dtype, kInfinity);
  const Node* positive = b.Const(dtype, or_largest(FloatOf(attributes, "posinf")));
  const Node* negative = b.Const(dtype, or_largest(FloatOf(attributes, "neginf")));
  const Node* finite = b.Where(b.Equal(x[0], infinity), positive,
                               b.Where(b.Equal(x[0], b.Const(dtype, -kInfinity)), negative, x[0]));
  return b.Where(IsNan(b, x[0]), b.Const(dtype, FloatOf(attributes, "nan")), finite);
}

OpDef OfPair(std::string_view name, DTypeRule dtype_rule, DTypeClass operand_class, ExpandFn expand,
             std::string_view doc) {
  OpDef row = Composite(name, {"a", "b"}, dtype_rule, operand_class, expand, doc);
  row.shape_rule = kBroadcastShape;
  return row;
}

OpDef IsClose() {
  OpDef row = OfPair("isclose", DTypeRule::kBool, DTypeClass::kAny, ExpandIsClose,
                     "Whether |a - b| <= atol + rtol * |b|; infinities are close to themselves, "
                     "NaN to nothing, or with equal_nan to NaN");
  row.attributes = {OptionalFloat("rtol", 1e-5), OptionalFloat("atol", 1e-8),
                    OptionalBool("equal_nan", false)};
  return row;
}

OpDef NanToNum() {
  OpDef row = Composite("nan_to_num", {"x"}, DTypeRule::kSame, DTypeClass::kAny, ExpandNanToNum,
                        "x with NaN and infinities replaced by numbers; an infinite posinf or "
                        "neginf stands for the dtype's largest or lowest");
  row.attributes = {OptionalFloat("nan", 0), OptionalFloat("posinf", kInfinity),
                    OptionalFloat("neginf", -kInfinity)};
  return row;
}

constexpr Rule kFloatResultRule = {
    "float_result", "",
    R"rule(check dtype.is_float: '"{op.name}" of {dtype.name}; it must be float')rule"};

}  // namespace

const Node* SignBit(Builder& b, const Node* x) {
  const Node* bits = ir::IsFloat(x->dtype()) ? Bits(b, x) : x;
  return b.Less(bits, b.ConstInt(bits->dtype(), 0));
}

// Clears the sign bit of floats. max(x, -x) would not do: for 0 and -0 it may return either.
const Node* Abs(Builder& b, const Node* x) {
  if (!ir::IsFloat(x->dtype())) {
    return ir::IsSigned(x->dtype()) ? b.Binary(Op::kMax, x, b.Neg(x)) : x;
  }
  const Node* bits = Bits(b, x);
  const Node* mask = b.Unary(Op::kNot, Bits(b, b.Const(x->dtype(), -0.0)));
  const Node* value = b.Bitcast(b.Binary(Op::kAnd, bits, mask), x->dtype());
  const Node* zero = b.Const(x->dtype(), 0);
  const Node* falling = b.Where(b.Less(x, zero), b.Const(x->dtype(), -1), zero);
  return b.WithDerivative(value, x, b.Where(b.Less(zero, x), b.Const(x->dtype(), 1), falling));
}

const Node* SignOf(Builder& b, const Node* x) {
  return b.Where(SignBit(b, x), b.Const(x->dtype(), -1), b.Const(x->dtype(), 1));
}

// 2^-e has the biased exponent 2 * bias - (e + bias); the exponents of 0 and infinity are excluded.
const Node* ScaleOf(Builder& b, const Node* magnitude) {
  const bool is_double = magnitude->dtype() == DType::kFloat64;
  const int mantissa_bits = is_double ? 52 : 23;
  const int64_t bias = is_double ? 1023 : 127;
  const Node* bits = Bits(b, b.Detach(magnitude));
  const auto exponent = [&](int64_t biased) {
    return b.ConstInt(bits->dtype(), biased << mantissa_bits);
  };
  const Node* own = b.Binary(Op::kAnd, bits, exponent(2 * bias + 1));
  const Node* opposite = b.Sub(exponent(2 * bias), own);
  const Node* least = b.Binary(Op::kMax, opposite, exponent(1));
  return b.Bitcast(b.Binary(Op::kMin, least, exponent(2 * bias - 1)), magnitude->dtype());
}

const Node* WithRoomForSquares(Builder& b, const Node* x) { return b.Cast(x, DType::kFloat64); }

std::vector<OpDef> NumberComposites() {
  return {
      Composite("signbit", {"x"}, DTypeRule::kBool, DTypeClass::kNumeric, ExpandSignBit,
                "Whether x's sign bit is set: it is below 0, or -0, or a NaN of that sign"),
      OfPair("copysign", DTypeRule::kPromoteFloat, DTypeClass::kNumeric, ExpandCopySign,
             "a with b's sign"),
      // kAny, since composites of kFloat are computed in float32 for short floats, but the
      // neighbours must be those of the dtype itself.
      Requiring({kFloatResultRule}, OfPair("nextafter", DTypeRule::kPromote, DTypeClass::kAny,
                                           ExpandNextAfter, "The next float after a towards b")),
      OfPair("fmod", DTypeRule::kPromote, DTypeClass::kNumeric, ExpandFmod,
             "The remainder of a / b with a's sign, as C's fmod"),
      IsClose(),
      NanToNum(),
  };
}

}  // namespace kiln::ops
