// Floating-point arithmetic; each result is rounded once.
#include <bit>
#include <cfenv>
#include <cmath>

#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class FloatOp { kAdd, kSub, kMul, kFma, kDiv, kSqrt, kRcp };

// The type that computes a format: float and double themselves, double for shorter formats.
template <Type kType>
struct Format {
  using Value = double;
  static Value Read(uint64_t bits) { return ToDouble(kType, bits); }
  static uint64_t Write(Value value) { return FromDouble(kType, value); }
};
template <>
struct Format<Type::kF32> {
  using Value = float;
  static Value Read(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
  static uint64_t Write(Value value) {
    return std::isnan(value) ? CanonicalNan(Type::kF32) : std::bit_cast<uint32_t>(value);
  }
};
template <>
struct Format<Type::kF64> {
  using Value = double;
  static Value Read(uint64_t bits) { return std::bit_cast<double>(bits); }
  static uint64_t Write(Value value) { return std::bit_cast<uint64_t>(value); }
};

template <Type kType, FloatOp op, typename Value>
Value Calculate(Value x, Value y, Value z) {
  constexpr bool kShort = kType == Type::kF16 || kType == Type::kBf16;
  switch (op) {
    case FloatOp::kAdd:
      return kShort ? static_cast<Value>(AddToOdd(x, y)) : x + y;
    case FloatOp::kSub:
      return kShort ? static_cast<Value>(AddToOdd(x, -y)) : x - y;
    case FloatOp::kMul:
      return x * y;
    case FloatOp::kFma:
      return kShort ? static_cast<Value>(AddToOdd(x * y, z)) : std::fma(x, y, z);
    case FloatOp::kDiv:
      return x / y;
    case FloatOp::kSqrt:
      return std::sqrt(x);
    case FloatOp::kRcp:
      return Value{1} / x;
  }
  return x;
}

template <Type kType, FloatOp op>
uint64_t EvaluateFloat(uint64_t a, uint64_t b, uint64_t c, const Instruction&) {
  using F = Format<kType>;
  return F::Write(Calculate<kType, op>(F::Read(a), F::Read(b), F::Read(c)));
}

int DirectionOf(Rounding rounding) {
  return rounding == Rounding::kZero   ? FE_TOWARDZERO
         : rounding == Rounding::kDown ? FE_DOWNWARD
         : rounding == Rounding::kUp   ? FE_UPWARD
                                       : FE_TONEAREST;
}

// The compiler does not know the rounding mode: volatile keeps the calculation between the two
// calls.
template <Type kType, FloatOp op>
uint64_t EvaluateModifiedFloat(uint64_t a, uint64_t b, uint64_t c, const Instruction& i) {
  using F = Format<kType>;
  if (i.flush) {
    a = Flush(kType, a);
    b = Flush(kType, b);
    c = Flush(kType, c);
  }
  volatile typename F::Value x = F::Read(a);
  volatile typename F::Value y = F::Read(b);
  volatile typename F::Value z = F::Read(c);
  volatile typename F::Value result;
  if (i.rounding == Rounding::kNearestEven) {
    result = Calculate<kType, op, typename F::Value>(x, y, z);
  } else {
    std::fesetround(DirectionOf(i.rounding));
    result = Calculate<kType, op, typename F::Value>(x, y, z);
    std::fesetround(FE_TONEAREST);
  }
  typename F::Value value = result;
  if (i.saturate) value = value > 0 ? (value < 1 ? value : 1) : 0;  // 0 for NaN
  const uint64_t bits = F::Write(value);
  return i.flush ? Flush(kType, bits) : bits;
}

// min and max: of a number and a NaN the result is the number, unless .NaN; -0 is less than +0.
template <Type kType, bool kMaximum>
uint64_t EvaluateExtremum(uint64_t a, uint64_t b, uint64_t, const Instruction& i) {
  if (i.flush) {
    a = Flush(kType, a);
    b = Flush(kType, b);
  }
  const bool a_nan = IsNan(kType, a);
  const bool b_nan = IsNan(kType, b);
  if ((a_nan && b_nan) || (i.unordered && (a_nan || b_nan))) return CanonicalNan(kType);
  if (a_nan) return b;
  if (b_nan) return a;
  const double x = ToDouble(kType, a);
  const double y = ToDouble(kType, b);
  const bool a_less = x < y || (x == y && (a & SignBit(kType)) != 0);
  return a_less == kMaximum ? b : a;
}

template <Type kType, bool kNegates>
uint64_t EvaluateSign(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  if (i.flush) a = Flush(kType, a);
  return kNegates ? a ^ SignBit(kType) : a & ~SignBit(kType);
}

template <template <Type> typename F>
Instruction::Execute ForFloat(Type type) {
  switch (type) {
    case Type::kF16:
      return Evaluate<F<Type::kF16>::kFunction>;
    case Type::kBf16:
      return Evaluate<F<Type::kBf16>::kFunction>;
    case Type::kF32:
      return Evaluate<F<Type::kF32>::kFunction>;
    case Type::kF64:
      return Evaluate<F<Type::kF64>::kFunction>;
    case Type::kF16x2:
      return EvaluatePair<F<Type::kF16>::kFunction, 16>;
    case Type::kBf16x2:
      return EvaluatePair<F<Type::kBf16>::kFunction, 16>;
    case Type::kF32x2:
      return EvaluatePair<F<Type::kF32>::kFunction, 32>;
    default:
      return nullptr;
  }
}

template <FloatOp op>
struct Plain {
  template <Type kType>
  struct For {
    static constexpr auto kFunction = EvaluateFloat<kType, op>;
  };
};
template <FloatOp op>
struct Modified {
  template <Type kType>
  struct For {
    static constexpr auto kFunction = EvaluateModifiedFloat<kType, op>;
  };
};
template <bool kMaximum>
struct Extremum {
  template <Type kType>
  struct For {
    static constexpr auto kFunction = EvaluateExtremum<kType, kMaximum>;
  };
};
template <bool kNegates>
struct Sign {
  template <Type kType>
  struct For {
    static constexpr auto kFunction = EvaluateSign<kType, kNegates>;
  };
};

template <FloatOp op>
Instruction::Execute ExecuteFloat(Type type, const Instruction& i) {
  const bool plain = !i.flush && !i.saturate && i.rounding == Rounding::kNearestEven;
  return plain ? ForFloat<Plain<op>::template For>(type)
               : ForFloat<Modified<op>::template For>(type);
}

Instruction::Execute ExecuteFloatHead(const std::string& head, Type type, const Instruction& i) {
  if (head == "add") return ExecuteFloat<FloatOp::kAdd>(type, i);
  if (head == "sub") return ExecuteFloat<FloatOp::kSub>(type, i);
  if (head == "mul") return ExecuteFloat<FloatOp::kMul>(type, i);
  if (head == "fma" || head == "mad") return ExecuteFloat<FloatOp::kFma>(type, i);
  if (head == "min") return ForFloat<Extremum<false>::For>(type);
  if (head == "max") return ForFloat<Extremum<true>::For>(type);
  if (head == "abs") return ForFloat<Sign<false>::For>(type);
  if (head == "neg") return ForFloat<Sign<true>::For>(type);
  if (type != Type::kF32 && type != Type::kF64) return nullptr;
  if (head == "div") return ExecuteFloat<FloatOp::kDiv>(type, i);
  if (head == "sqrt") return ExecuteFloat<FloatOp::kSqrt>(type, i);
  return head == "rcp" ? ExecuteFloat<FloatOp::kRcp>(type, i) : nullptr;
}

}  // namespace

void DecodeFloat(StatementDecoder& decoder, Type type) {
  Instruction& i = decoder.instruction;
  const std::string& head = decoder.head();
  const bool rounds = head != "min" && head != "max" && head != "abs" && head != "neg";
  if (decoder.Take("approx") || decoder.Take("full"))
    return decoder.Refuse("an approximation, whose last bits are each GPU's own");
  if (rounds) i.rounding = decoder.TakeRounding();
  i.flush = (ElementOf(type) == Type::kF32 || ElementOf(type) == Type::kF16) && decoder.Take("ftz");
  i.saturate = rounds && type != Type::kF64 && decoder.Take("sat");
  if (!rounds) i.unordered = decoder.Take("NaN");
  const bool is_short = ElementOf(type) == Type::kF16 || ElementOf(type) == Type::kBf16;
  if (is_short && i.rounding != Rounding::kNearestEven) return decoder.Invalid("the rounding");
  i.execute = ExecuteFloatHead(head, type, i);
  if (i.execute == nullptr) return decoder.Refuse("the type");
  const bool unary = head == "abs" || head == "neg" || head == "sqrt" || head == "rcp";
  const size_t operands = head == "fma" || head == "mad" ? 4 : unary ? 2 : 3;
  if (!decoder.Expect(operands, operands)) return;
  i.to = decoder.Write(0, type);
  i.a = decoder.Read(1, type);
  if (operands > 2) i.b = decoder.Read(2, type);
  if (operands > 3) i.c = decoder.Read(3, type);
}

}  // namespace kiln::stand_ins::ptx
