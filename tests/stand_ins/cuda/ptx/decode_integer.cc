// Integer arithmetic, and the dispatch between integers and floats.
#include <limits>

#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class IntegerOp {
  kAdd,
  kSub,
  kMulLow,
  kMulHigh,
  kMulWide,
  kDiv,
  kRem,
  kMin,
  kMax,
  kAbs,
  kNeg
};

template <typename T>
using WideOf =
    std::conditional_t<sizeof(T) == 8,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
                       std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

template <typename T>
T Saturated(WideOf<T> value) {
  if (value > std::numeric_limits<T>::max()) return std::numeric_limits<T>::max();
  if (value < std::numeric_limits<T>::min()) return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

// PTX does not define division by zero; this is the result on real machines.
template <typename T>
T Quotient(T x, T y) {
  if (y == 0) return static_cast<T>(-1);
  if (std::is_signed_v<T> && y == static_cast<T>(-1))
    return static_cast<T>(-static_cast<WideOf<T>>(x));
  return static_cast<T>(x / y);
}
template <typename T>
T Remainder(T x, T y) {
  if (y == 0) return x;
  if (std::is_signed_v<T> && y == static_cast<T>(-1)) return 0;
  return static_cast<T>(x % y);
}

// For mul and mad: an unused addend is zero.
template <typename T, IntegerOp op>
uint64_t EvaluateInteger(uint64_t a, uint64_t b, uint64_t c, const Instruction& i) {
  using Wide = WideOf<T>;
  const auto x = static_cast<T>(a);
  const auto y = static_cast<T>(b);
  const auto z = static_cast<T>(c);
  const auto wide_x = static_cast<Wide>(x);
  const auto wide_y = static_cast<Wide>(y);
  switch (op) {
    case IntegerOp::kAdd:
      return Extend(i.saturate ? Saturated<T>(wide_x + wide_y) : static_cast<T>(a + b));
    case IntegerOp::kSub:
      return Extend(i.saturate ? Saturated<T>(wide_x - wide_y) : static_cast<T>(a - b));
    case IntegerOp::kMulLow:
      return Extend(static_cast<T>(a * b + c));
    case IntegerOp::kMulHigh: {
      const auto high = static_cast<T>(wide_x * wide_y >> (8 * sizeof(T)));
      if (i.saturate) return Extend(Saturated<T>(static_cast<Wide>(high) + z));
      return Extend(static_cast<T>(static_cast<uint64_t>(high) + c));
    }
    case IntegerOp::kMulWide:
      return static_cast<uint64_t>(wide_x * wide_y) + c;
    case IntegerOp::kDiv:
      return Extend(Quotient(x, y));
    case IntegerOp::kRem:
      return Extend(Remainder(x, y));
    case IntegerOp::kMin:
      return Extend(x < y ? x : y);
    case IntegerOp::kMax:
      return Extend(x > y ? x : y);
    case IntegerOp::kAbs:
      return Extend(static_cast<T>(x < 0 ? -a : a));
    case IntegerOp::kNeg:
      return Extend(static_cast<T>(-a));
  }
  return 0;
}

template <IntegerOp op>
Instruction::Execute ExecuteInteger(Type type) {
  switch (type) {
    case Type::kU16:
      return Evaluate<EvaluateInteger<uint16_t, op>>;
    case Type::kS16:
      return Evaluate<EvaluateInteger<int16_t, op>>;
    case Type::kU32:
      return Evaluate<EvaluateInteger<uint32_t, op>>;
    case Type::kS32:
      return Evaluate<EvaluateInteger<int32_t, op>>;
    case Type::kU64:
      return Evaluate<EvaluateInteger<uint64_t, op>>;
    case Type::kS64:
      return Evaluate<EvaluateInteger<int64_t, op>>;
    case Type::kU16x2:
      return EvaluatePair<EvaluateInteger<uint16_t, op>, 16>;
    case Type::kS16x2:
      return EvaluatePair<EvaluateInteger<int16_t, op>, 16>;
    default:
      return nullptr;
  }
}

Instruction::Execute ExecuteMultiplication(StatementDecoder& decoder, Type type, Type* wide) {
  switch (decoder.TakeOneOf({"lo", "hi", "wide"}, 3)) {
    case 0:
      return ExecuteInteger<IntegerOp::kMulLow>(type);
    case 1:
      return ExecuteInteger<IntegerOp::kMulHigh>(type);
    case 2:
      *wide = type == Type::kU16   ? Type::kU32
              : type == Type::kS16 ? Type::kS32
              : type == Type::kU32 ? Type::kU64
                                   : Type::kS64;
      if (BytesOf(type) == 8) decoder.Refuse("a product of 128 bits");
      return ExecuteInteger<IntegerOp::kMulWide>(type);
    default:
      decoder.Refuse("neither .lo nor .hi nor .wide");
      return nullptr;
  }
}

Instruction::Execute ExecuteHead(const std::string& head, Type type) {
  if (head == "add") return ExecuteInteger<IntegerOp::kAdd>(type);
  if (head == "sub") return ExecuteInteger<IntegerOp::kSub>(type);
  if (IsPacked(type) && head != "min" && head != "max") return nullptr;
  if (head == "div") return ExecuteInteger<IntegerOp::kDiv>(type);
  if (head == "rem") return ExecuteInteger<IntegerOp::kRem>(type);
  if (head == "min") return ExecuteInteger<IntegerOp::kMin>(type);
  if (head == "max") return ExecuteInteger<IntegerOp::kMax>(type);
  if (!IsSigned(type)) return nullptr;
  if (head == "abs") return ExecuteInteger<IntegerOp::kAbs>(type);
  return head == "neg" ? ExecuteInteger<IntegerOp::kNeg>(type) : nullptr;
}

// The carry is stored in the thread, from .cc to the next of these instructions.
template <typename T, bool kSubtract, bool kReads>
void AddWithCarry(Thread& thread, const Instruction& i) {
  const auto x = static_cast<T>(thread.slots[i.a]);
  const auto y = static_cast<T>(thread.slots[i.b]);
  const unsigned __int128 carry = kReads && thread.carry ? 1 : 0;
  if (kSubtract) {
    const unsigned __int128 taken = static_cast<unsigned __int128>(y) + carry;
    thread.slots[i.to] = static_cast<T>(x - y - static_cast<T>(carry));
    if (i.operation != 0) thread.carry = taken > x;
  } else {
    const unsigned __int128 sum = static_cast<unsigned __int128>(x) + y + carry;
    thread.slots[i.to] = static_cast<T>(sum);
    if (i.operation != 0) thread.carry = (sum >> (8 * sizeof(T))) != 0;
  }
}

template <bool kReads>
Instruction::Execute ExecuteCarry(bool subtract, bool wide) {
  if (subtract)
    return wide ? AddWithCarry<uint64_t, true, kReads> : AddWithCarry<uint32_t, true, kReads>;
  return wide ? AddWithCarry<uint64_t, false, kReads> : AddWithCarry<uint32_t, false, kReads>;
}

void DecodeCarryOf(StatementDecoder& decoder, Type type, bool subtract, bool reads, bool writes) {
  if (BytesOf(type) < 4 || IsFloat(type)) decoder.Invalid("a carry of this type");
  decoder.Expect(3, 3);
  Instruction& i = decoder.instruction;
  i.to = decoder.Write(0, type);
  i.a = decoder.Read(1, type);
  i.b = decoder.Read(2, type);
  i.operation = writes;
  i.execute = reads ? ExecuteCarry<true>(subtract, BytesOf(type) == 8)
                    : ExecuteCarry<false>(subtract, BytesOf(type) == 8);
}

}  // namespace

void DecodeInteger(StatementDecoder& decoder, Type type) {
  Instruction& i = decoder.instruction;
  const std::string& head = decoder.head();
  if ((head == "add" || head == "sub") && decoder.Take("cc"))
    return DecodeCarryOf(decoder, type, head == "sub", false, true);
  i.saturate = type == Type::kS32 && decoder.Take("sat");
  Type result = type;
  const bool multiplies = head == "mul" || head == "mad";
  i.execute = multiplies ? ExecuteMultiplication(decoder, type, &result) : ExecuteHead(head, type);
  if (i.execute == nullptr) return decoder.Refuse("the type");
  const bool unary = head == "abs" || head == "neg";
  const size_t operands = head == "mad" ? 4 : unary ? 2 : 3;
  if (!decoder.Expect(operands, operands)) return;
  i.to = decoder.Write(0, result);
  i.a = decoder.Read(1, type);
  if (!unary) i.b = decoder.Read(2, type);
  if (head == "mad") i.c = decoder.Read(3, result);
  if (head == "mul") i.c = decoder.Constant(0);
}

void DecodeCarry(StatementDecoder& decoder) {
  if (decoder.head() == "madc") return decoder.Refuse("the instruction");
  const bool writes = decoder.Take("cc");
  const Type type = decoder.TakeType();
  DecodeCarryOf(decoder, type, decoder.head() == "subc", true, writes);
}

void DecodeArithmetic(StatementDecoder& decoder) {
  const Type type = decoder.TakeType();
  if (IsFloat(type)) return DecodeFloat(decoder, type);
  DecodeInteger(decoder, type);
}

}  // namespace kiln::stand_ins::ptx
