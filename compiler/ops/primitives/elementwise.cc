// Rows of the elementwise primitives.
//
// Integers: arithmetic wraps. Division and remainder floor like Python's, and give 0 for a zero
// divisor. A shift by the dtype's width or more, or by a negative amount, gives 0, except that a
// right shift of a negative number gives -1, like NumPy's. Floats: maximum and minimum give NaN
// when either operand is NaN, like NumPy's.
#include "compiler/ops/primitives/evaluations.h"
#include "compiler/ops/primitives/gradients.h"
#include "compiler/ops/rows.h"
#include "compiler/ops/rules/shape_rules.h"

namespace kiln::ops {
namespace {

using ir::Op;

OpDef Unary(std::string_view name, Op op, DTypeRule dtype_rule, DTypeClass operand_class,
            GradientFn gradient, EvaluateFn evaluate, std::string_view doc) {
  return {.name = name,
          .kind = Kind::kUnary,
          .op = op,
          .operands = {"x"},
          .shape_rule = kSameShape,
          .dtype_rule = dtype_rule,
          .operand_class = operand_class,
          .gradient = gradient,
          .evaluate = evaluate,
          .doc = doc};
}

OpDef Binary(std::string_view name, Op op, DTypeRule dtype_rule, DTypeClass operand_class,
             GradientFn gradient, EvaluateFn evaluate, std::string_view doc) {
  return {.name = name,
          .kind = Kind::kBinary,
          .op = op,
          .operands = {"a", "b"},
          .shape_rule = kBroadcastShape,
          .dtype_rule = dtype_rule,
          .operand_class = operand_class,
          .gradient = gradient,
          .evaluate = evaluate,
          .doc = doc};
}

// Saturating is ONNX's default; it also maps infinities to the largest number.
OpDef Cast() {
  OpDef row =
      Unary("cast", Op::kCast, DTypeRule::kAttribute, DTypeClass::kAny, CastGradient, EvaluateCast,
            "x in another dtype. Integers wrap. Float to integer cuts the fraction; NaN gives 0, "
            "what is out of range the nearest end. To bool: whether x is not 0. To a float8: what "
            "is beyond its largest number, infinities too, becomes that number, or without "
            "saturate NaN of float8_e4m3 and an infinity of float8_e5m2");
  row.attributes = {OptionalBool("saturate", true)};
  return row;
}

OpDef Where() {
  return {.name = "where",
          .kind = Kind::kTernary,
          .op = Op::kWhere,
          .operands = {"condition", "a", "b"},
          .shape_rule = kBroadcastShape,
          .dtype_rule = DTypeRule::kPromote,
          .special_operand = 0,
          .special_class = DTypeClass::kBool,
          .gradient = WhereGradient,
          .evaluate = EvaluateWhere,
          .doc = "a where condition is true, b elsewhere"};
}

constexpr Rule kEqualBitsRule = {"equal_bits", "", R"rule(
  source = dtypes[0]
  has_bool = (source.name == "bool") != (dtype.name == "bool")
  check source.itemsize == dtype.itemsize and not has_bool:
    "cannot {op.name} {source.name} to {dtype.name}; both must have one size, and not be bool"
)rule"};

}  // namespace

std::vector<OpDef> ElementwiseOps() {
  constexpr auto kAny = DTypeClass::kAny;
  constexpr auto kNumeric = DTypeClass::kNumeric;
  constexpr auto kInteger = DTypeClass::kInteger;
  constexpr auto kIntegerOrBool = DTypeClass::kIntegerOrBool;
  constexpr auto kSame = DTypeRule::kSame;
  constexpr auto kPromote = DTypeRule::kPromote;
  constexpr auto kPromoteFloat = DTypeRule::kPromoteFloat;
  constexpr auto kBool = DTypeRule::kBool;
  constexpr auto kDeclared = DTypeRule::kAttribute;
  return {
      Unary("neg", Op::kNeg, kSame, kNumeric, NegGradient, EvaluateNeg, "-x; unsigned wraps"),
      Unary("reciprocal", Op::kReciprocal, kPromoteFloat, kAny, ReciprocalGradient,
            EvaluateReciprocal, "1 / x"),
      Unary("sqrt", Op::kSqrt, kPromoteFloat, kAny, SqrtGradient, EvaluateSqrt,
            "The square root; NaN below 0"),
      Unary("exp2", Op::kExp2, kPromoteFloat, kAny, Exp2Gradient, EvaluateExp2, "2 to the x"),
      Unary("log2", Op::kLog2, kPromoteFloat, kAny, Log2Gradient, EvaluateLog2,
            "The binary logarithm; -inf at 0, NaN below"),
      Unary("sin", Op::kSin, kPromoteFloat, kAny, SinGradient, EvaluateSin,
            "The sine of x in radians"),
      Unary("trunc", Op::kTrunc, kSame, kNumeric, nullptr, EvaluateTrunc,
            "x without its fraction; its gradient is 0"),
      Unary("not", Op::kNot, kSame, kIntegerOrBool, nullptr, EvaluateNot,
            "Every bit inverted; of bool, the opposite"),
      Cast(),
      Requiring({kEqualBitsRule},
                Unary("bitcast", Op::kBitcast, kDeclared, kAny, nullptr, EvaluateBitcast,
                      "The same bits in another dtype of the same size")),
      Binary("add", Op::kAdd, kPromote, kNumeric, AddGradient, EvaluateAdd, "a + b"),
      Binary("sub", Op::kSub, kPromote, kNumeric, SubGradient, EvaluateSub, "a - b"),
      Binary("mul", Op::kMul, kPromote, kNumeric, MulGradient, EvaluateMul, "a * b"),
      Binary("div", Op::kDiv, kPromoteFloat, kAny, DivGradient, EvaluateDiv, "a / b, as floats"),
      Binary("idiv", Op::kIDiv, kPromote, kInteger, nullptr, EvaluateIDiv,
             "a / b rounded down, of integers; 0 where b is 0"),
      Binary(
          "mod", Op::kMod, kPromote, kNumeric, ModGradient, EvaluateMod,
          "a - floor(a / b) * b without that rounding, as Python's %: it has b's sign; where b is "
          "0, 0 of integers and NaN of floats"),
      Binary("maximum", Op::kMax, kPromote, kAny, MaximumGradient, EvaluateMaximum,
             "The larger of a and b; NaN if either is"),
      Binary("minimum", Op::kMin, kPromote, kAny, MinimumGradient, EvaluateMinimum,
             "The smaller of a and b; NaN if either is"),
      Binary("pow", Op::kPow, kPromote, kNumeric, PowGradient, EvaluatePow,
             "a to the b; of floats C's pow; of integers it wraps, and to a negative power is 0 "
             "unless "
             "a is 1 or -1"),
      Binary("cmplt", Op::kCmpLt, kBool, kAny, nullptr, EvaluateLess, "a < b"),
      Binary("cmpeq", Op::kCmpEq, kBool, kAny, nullptr, EvaluateEqual, "a == b"),
      Binary("cmpne", Op::kCmpNe, kBool, kAny, nullptr, EvaluateNotEqual, "a != b"),
      Binary("and", Op::kAnd, kPromote, kIntegerOrBool, nullptr, EvaluateAnd, "a & b, bit by bit"),
      Binary("or", Op::kOr, kPromote, kIntegerOrBool, nullptr, EvaluateOr, "a | b, bit by bit"),
      Binary("xor", Op::kXor, kPromote, kIntegerOrBool, nullptr, EvaluateXor, "a ^ b, bit by bit"),
      Binary("shl", Op::kShl, kPromote, kInteger, nullptr, EvaluateShl,
             "a << b; 0 where b is negative or at least a's width"),
      Binary("shr", Op::kShr, kPromote, kInteger, nullptr, EvaluateShr,
             "a >> b with a's sign kept; where b is negative or at least a's width, the sign "
             "alone: -1 "
             "or 0"),
      Where(),
  };
}

}  // namespace kiln::ops
