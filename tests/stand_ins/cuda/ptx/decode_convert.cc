// cvt, and instructions on addresses of state spaces.
#include <algorithm>
#include <bit>
#include <cmath>

#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

int BitsOf(Type type) { return 8 * BytesOf(type); }

// Extends an integer of the type to 64 bits.
uint64_t ExtendAs(Type type, uint64_t bits) {
  const int unused = 64 - BitsOf(type);
  if (IsSigned(type)) return static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
  return bits << unused >> unused;
}

uint64_t LowestOf(Type type) { return IsSigned(type) ? ~uint64_t{0} << (BitsOf(type) - 1) : 0; }
uint64_t HighestOf(Type type) {
  return ~uint64_t{0} >> (64 - BitsOf(type) + (IsSigned(type) ? 1 : 0));
}

uint64_t IntegerToInteger(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  const uint64_t value = ExtendAs(i.from, a);
  if (!i.saturate) return ExtendAs(i.type, value);
  const bool negative = IsSigned(i.from) && static_cast<int64_t>(value) < 0;
  if (negative) {
    if (!IsSigned(i.type)) return 0;
    const auto lowest = static_cast<int64_t>(LowestOf(i.type));
    return static_cast<uint64_t>(std::max(static_cast<int64_t>(value), lowest));
  }
  return std::min(value, HighestOf(i.type));
}

uint64_t IntegerToFloat(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  const uint64_t value = ExtendAs(i.from, a);
  const bool negative = IsSigned(i.from) && static_cast<int64_t>(value) < 0;
  const uint64_t bits =
      Pack(i.type, UnpackInteger(negative, negative ? -value : value), i.rounding);
  if (!i.saturate) return bits;
  const double number = ToDouble(i.type, bits);
  return FromDouble(i.type, number > 0 ? std::min(number, 1.0) : 0);
}

double RoundToIntegral(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(value);
    case Rounding::kDown:
      return std::floor(value);
    case Rounding::kUp:
      return std::ceil(value);
    default:
      return std::nearbyint(value);
  }
}

uint64_t FloatToInteger(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  if (i.flush) a = Flush(i.from, a);
  if (IsNan(i.from, a)) {
    const bool wide = i.from == Type::kF64 || BitsOf(i.type) == 64;
    return wide ? ExtendAs(i.type, uint64_t{1} << (BitsOf(i.type) - 1)) : 0;
  }
  const double value = RoundToIntegral(ToDouble(i.from, a), i.rounding);
  const int magnitude_bits = BitsOf(i.type) - (IsSigned(i.type) ? 1 : 0);
  const double beyond = std::ldexp(1.0, magnitude_bits);
  if (value >= beyond) return HighestOf(i.type);
  if (value < (IsSigned(i.type) ? -beyond : 0)) return LowestOf(i.type);
  return IsSigned(i.type) ? static_cast<uint64_t>(static_cast<int64_t>(value))
                          : static_cast<uint64_t>(value);
}

uint64_t FloatToFloat(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  if (i.flush && i.from == Type::kF32) a = Flush(i.from, a);
  Unpacked number = Unpack(i.from, a);
  if (i.integral && number.kind == Unpacked::Kind::kFinite) {
    const double value = RoundToIntegral(ToDouble(i.from, a), i.rounding);
    number = Unpack(Type::kF64, std::bit_cast<uint64_t>(value));
  }
  uint64_t bits = Pack(i.type, number, i.integral ? Rounding::kNearestEven : i.rounding);
  if (i.saturate) {
    const double value = ToDouble(i.type, bits);
    bits = FromDouble(i.type, value > 0 ? std::min(value, 1.0) : 0);
  }
  return i.flush && i.type == Type::kF32 ? Flush(i.type, bits) : bits;
}

// The most common ones, by the processor's instructions.
uint64_t SinglePrecisionToDouble(uint64_t a, uint64_t, uint64_t, const Instruction&) {
  return std::bit_cast<uint64_t>(
      static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(a))));
}

// cvt.f16x2.f32 d, a, b: a is the high half.
uint64_t PairToPacked(uint64_t a, uint64_t b, uint64_t c, const Instruction& i) {
  return FloatToFloat(a, b, c, i) << 16 | FloatToFloat(b, b, c, i);
}

void DecodePacked(StatementDecoder& decoder, Type packed) {
  Instruction& i = decoder.instruction;
  if (i.from != Type::kF32 || !decoder.Expect(3, 3)) return decoder.Refuse("the types");
  i.type = ElementOf(packed);
  i.execute = Evaluate<PairToPacked>;
  i.to = decoder.Write(0, packed);
  i.a = decoder.Read(1, Type::kF32);
  i.b = decoder.Read(2, Type::kF32);
}

void Convert(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool from_float = IsFloat(i.from);
  const bool to_float = IsFloat(i.type);
  if (from_float && to_float) {
    const bool exact =
        i.from == Type::kF32 && i.type == Type::kF64 && !i.flush && !i.saturate && !i.integral;
    i.execute = exact ? Evaluate<SinglePrecisionToDouble> : Evaluate<FloatToFloat>;
  } else if (to_float) {
    i.execute = Evaluate<IntegerToFloat>;
  } else {
    i.execute = from_float ? Evaluate<FloatToInteger> : Evaluate<IntegerToInteger>;
  }
}

uint64_t WindowOf(Space space) {
  return space == Space::kShared  ? kSharedWindow
         : space == Space::kLocal ? kLocalWindow
         : space == Space::kParam ? kParameterWindow
                                  : 0;
}

uint64_t ToGeneric(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  return a + static_cast<uint64_t>(i.offset);
}
void FromGeneric(Thread& thread, const Instruction& i) {
  const uint64_t address = thread.slots[i.a] - static_cast<uint64_t>(i.offset);
  if (i.offset != 0 && address >= kWindowBytes)
    return thread.Fail(i, FaultKind::kUndefined, "the address is not of that state space");
  thread.slots[i.to] = address;
}
uint64_t IsInSpace(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  if (i.offset != 0) return a - static_cast<uint64_t>(i.offset) < kWindowBytes;
  return a < kParameterWindow || a >= kSharedWindow + kWindowBytes;
}

}  // namespace

void DecodeConversion(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  constexpr Rounding kRoundings[] = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown,
                                     Rounding::kUp};
  const int integral = decoder.TakeOneOf({"rni", "rzi", "rmi", "rpi"}, 4);
  i.integral = integral < 4;
  i.rounding = i.integral ? kRoundings[integral] : decoder.TakeRounding();
  i.flush = decoder.Take("ftz");
  i.saturate = decoder.Take("sat");
  i.type = decoder.TakeType();
  i.from = decoder.TakeType();
  if (IsPacked(i.type)) return DecodePacked(decoder, i.type);
  if (IsPacked(i.from) || i.from == Type::kTf32) return decoder.Refuse("the types");
  if (i.type == Type::kPred || i.from == Type::kPred) return decoder.Invalid("a predicate");
  if (IsFloat(i.from) && !IsFloat(i.type) && !i.integral) return decoder.Invalid("no rounding");
  Convert(decoder);
  if (!decoder.Expect(2, 2)) return;
  i.to = decoder.Write(decoder.operand(0), i.type, true);
  i.a = decoder.Read(decoder.operand(1), i.from, true);
}

void DecodeAddressSpace(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool asks = decoder.head() == "isspacep";
  const bool to_space = decoder.Take("to");
  i.offset = static_cast<int64_t>(WindowOf(decoder.TakeSpace()));
  if (asks) {
    i.execute = Evaluate<IsInSpace>;
  } else {
    if (BytesOf(decoder.TakeType()) != 8) return decoder.Refuse("addresses of 32 bits");
    i.execute = to_space ? FromGeneric : Evaluate<ToGeneric>;
  }
  if (!decoder.Expect(2, 2)) return;
  i.to = decoder.Write(0, asks ? Type::kPred : Type::kU64);
  const Operand& from = decoder.operand(1);
  if (decoder.IsRegister(from)) {
    i.a = decoder.Read(from, Type::kU64);
  } else if (const Names::Place* place = decoder.FindVariable(from)) {
    if (place->space == Space::kLocal || place->space == Space::kParam)
      return decoder.Refuse("a local variable by its name");
    i.a = decoder.Constant(place->address + from.offset);
  } else {
    decoder.Invalid("what it converts");
  }
}

}  // namespace kiln::stand_ins::ptx
