// Comparisons, and selections by their results.
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class Combination : uint8_t { kNone, kAnd, kOr, kXor };

template <typename T>
bool CompareValues(Comparison comparison, T x, T y) {
  switch (comparison) {
    case Comparison::kEqual:
      return x == y;
    case Comparison::kNotEqual:
      return x != y;
    case Comparison::kLess:
      return x < y;
    case Comparison::kLessEqual:
      return x <= y;
    case Comparison::kGreater:
      return x > y;
    case Comparison::kGreaterEqual:
      return x >= y;
    default:
      return false;
  }
}

template <typename T>
bool CompareIntegers(uint64_t a, uint64_t b, const Instruction& i) {
  return CompareValues(i.comparison, static_cast<T>(a), static_cast<T>(b));
}

template <Type kType>
bool CompareFloats(uint64_t a, uint64_t b, const Instruction& i) {
  if (i.flush) {
    a = Flush(kType, a);
    b = Flush(kType, b);
  }
  const bool nan = IsNan(kType, a) || IsNan(kType, b);
  if (i.comparison == Comparison::kNan || i.comparison == Comparison::kNumbers)
    return nan == (i.comparison == Comparison::kNan);
  if (nan) return i.unordered;
  return CompareValues(i.comparison, ToDouble(kType, a), ToDouble(kType, b));
}

bool Combine(bool compared, bool other, Combination combination) {
  switch (combination) {
    case Combination::kAnd:
      return compared && other;
    case Combination::kOr:
      return compared || other;
    case Combination::kXor:
      return compared != other;
    default:
      return compared;
  }
}

// p | q = (a ? b) combined with c, and the negation of (a ? b) combined with c.
template <auto kCompare>
void SetPredicate(Thread& thread, const Instruction& i) {
  const bool compared = kCompare(thread.slots[i.a], thread.slots[i.b], i);
  const bool other = ((thread.slots[i.c] & 1) != 0) != i.negated;
  const auto combination = static_cast<Combination>(i.operation);
  thread.slots[i.to] = Combine(compared, other, combination);
  thread.slots[i.d] = Combine(!compared, other, combination);
}

// Each half has a separate predicate.
template <Type kType>
void SetPredicatePair(Thread& thread, const Instruction& i) {
  const uint64_t a = thread.slots[i.a];
  const uint64_t b = thread.slots[i.b];
  const bool other = ((thread.slots[i.c] & 1) != 0) != i.negated;
  const auto combination = static_cast<Combination>(i.operation);
  const bool low = CompareFloats<kType>(a & 0xffff, b & 0xffff, i);
  const bool high = CompareFloats<kType>(a >> 16 & 0xffff, b >> 16 & 0xffff, i);
  thread.slots[i.to] = Combine(low, other, combination);
  thread.slots[i.d] = Combine(high, other, combination);
}

// set: the result as a number; Instruction::offset is the value of true.
template <auto kCompare>
void SetNumber(Thread& thread, const Instruction& i) {
  SetPredicate<kCompare>(thread, i);
  thread.slots[i.to] = thread.slots[i.to] != 0 ? static_cast<uint64_t>(i.offset) : 0;
}

template <template <auto> typename F>
Instruction::Execute ForComparison(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return F<CompareIntegers<uint16_t>>::kExecute;
    case Type::kB32:
    case Type::kU32:
      return F<CompareIntegers<uint32_t>>::kExecute;
    case Type::kB64:
    case Type::kU64:
      return F<CompareIntegers<uint64_t>>::kExecute;
    case Type::kS16:
      return F<CompareIntegers<int16_t>>::kExecute;
    case Type::kS32:
      return F<CompareIntegers<int32_t>>::kExecute;
    case Type::kS64:
      return F<CompareIntegers<int64_t>>::kExecute;
    case Type::kF16:
      return F<CompareFloats<Type::kF16>>::kExecute;
    case Type::kBf16:
      return F<CompareFloats<Type::kBf16>>::kExecute;
    case Type::kF32:
      return F<CompareFloats<Type::kF32>>::kExecute;
    case Type::kF64:
      return F<CompareFloats<Type::kF64>>::kExecute;
    default:
      return nullptr;
  }
}
template <auto kCompare>
struct ToPredicate {
  static constexpr Instruction::Execute kExecute = SetPredicate<kCompare>;
};
template <auto kCompare>
struct ToNumber {
  static constexpr Instruction::Execute kExecute = SetNumber<kCompare>;
};

void TakeComparison(StatementDecoder& decoder) {
  struct Row {
    absl::string_view name;
    Comparison comparison;
    bool unordered;
  };
  constexpr Row kRows[] = {
      {"eq", Comparison::kEqual, false},    {"ne", Comparison::kNotEqual, false},
      {"lt", Comparison::kLess, false},     {"le", Comparison::kLessEqual, false},
      {"gt", Comparison::kGreater, false},  {"ge", Comparison::kGreaterEqual, false},
      {"lo", Comparison::kLess, false},     {"ls", Comparison::kLessEqual, false},
      {"hi", Comparison::kGreater, false},  {"hs", Comparison::kGreaterEqual, false},
      {"equ", Comparison::kEqual, true},    {"neu", Comparison::kNotEqual, true},
      {"ltu", Comparison::kLess, true},     {"leu", Comparison::kLessEqual, true},
      {"gtu", Comparison::kGreater, true},  {"geu", Comparison::kGreaterEqual, true},
      {"num", Comparison::kNumbers, false}, {"nan", Comparison::kNan, false},
  };
  for (const Row& row : kRows) {
    if (!decoder.Take(row.name)) continue;
    decoder.instruction.comparison = row.comparison;
    decoder.instruction.unordered = row.unordered;
    return;
  }
  decoder.Refuse("the comparison");
}

uint64_t Choose(uint64_t a, uint64_t b, uint64_t c, const Instruction& i) {
  return ((c & 1) != 0) != i.negated ? a : b;
}
uint64_t ChooseBySign(uint64_t a, uint64_t b, uint64_t c, const Instruction&) {
  return static_cast<int32_t>(c) >= 0 ? a : b;
}
// Combines the sign of a with the magnitude of b.
uint64_t CopySign(uint64_t a, uint64_t b, uint64_t, const Instruction& i) {
  const uint64_t sign = SignBit(i.type);
  return (b & (sign - 1)) | (a & sign);
}
uint64_t TestProperty(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  const Unpacked number = Unpack(i.type, a);
  const bool finite = number.kind == Unpacked::Kind::kFinite;
  const bool subnormal = Flush(i.type, a) != a;
  switch (i.operation) {
    case 0:
      return finite;
    case 1:
      return number.kind == Unpacked::Kind::kInfinity;
    case 2:
      return number.kind != Unpacked::Kind::kNan;
    case 3:
      return number.kind == Unpacked::Kind::kNan;
    case 4:
      return finite && !subnormal;  // PTX counts zeros as normal
    default:
      return subnormal;
  }
}

}  // namespace

void DecodeComparison(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool predicate = decoder.head() == "setp";
  TakeComparison(decoder);
  i.operation = decoder.TakeOneOf({"none", "and", "or", "xor"}, 0);
  i.flush = decoder.Take("ftz");
  const Type result = predicate ? Type::kPred : decoder.TakeType();
  const Type type = decoder.TakeType();
  const bool combines = i.operation != 0;
  if (!decoder.Expect(combines ? 4 : 3, combines ? 4 : 3)) return;
  const Operand& to = decoder.operand(0);
  if (predicate && to.kind == Operand::Kind::kPair) {
    i.to = decoder.Write(to.elements[0], Type::kPred);
    i.d = decoder.Write(to.elements[1], Type::kPred);
  } else {
    i.to = decoder.Write(0, result);
  }
  i.a = decoder.Read(1, type);
  i.b = decoder.Read(2, type);
  if (combines) i.c = decoder.ReadPredicate(3, &i.negated);
  if (result == Type::kF32) {
    i.offset = 0x3f800000;
  } else if (BytesOf(result) == 4 || predicate) {
    i.offset = 0xffffffff;
  } else {
    decoder.Refuse("a result of this type");
  }
  if (predicate && IsPacked(type) && IsFloat(type)) {
    i.execute = type == Type::kF16x2 ? SetPredicatePair<Type::kF16> : SetPredicatePair<Type::kBf16>;
  } else {
    i.execute = predicate ? ForComparison<ToPredicate>(type) : ForComparison<ToNumber>(type);
  }
  if (i.execute == nullptr || type == Type::kF32x2) decoder.Refuse("the type");
}

void DecodeSelection(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const std::string& head = decoder.head();
  if (head == "testp") {
    i.operation =
        decoder.TakeOneOf({"finite", "infinite", "number", "notanumber", "normal", "subnormal"}, 6);
    if (i.operation == 6) return decoder.Invalid("the property");
  }
  i.type = decoder.TakeType();
  if (head == "testp" || head == "copysign") {
    if (i.type != Type::kF32 && i.type != Type::kF64) return decoder.Invalid("the type");
  }
  if (head == "testp") {
    i.execute = Evaluate<TestProperty>;
    i.to = decoder.Write(0, Type::kPred);
    i.a = decoder.Read(1, i.type);
    return;
  }
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  i.b = decoder.Read(2, i.type);
  if (head == "copysign") {
    i.execute = Evaluate<CopySign>;
  } else if (head == "selp") {
    i.execute = Evaluate<Choose>;
    i.c = decoder.ReadPredicate(3, &i.negated);
  } else {
    if (decoder.TakeType() != Type::kS32) return decoder.Refuse("a choice by another type");
    i.execute = Evaluate<ChooseBySign>;
    i.c = decoder.Read(3, Type::kS32);
  }
}

}  // namespace kiln::stand_ins::ptx
