// Logic, shifts and bit fields.
#include <algorithm>
#include <bit>

#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

uint64_t MaskOf(Type type) {
  return BytesOf(type) == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * BytesOf(type))) - 1;
}

uint64_t And(uint64_t a, uint64_t b, uint64_t, const Instruction&) { return a & b; }
uint64_t Or(uint64_t a, uint64_t b, uint64_t, const Instruction&) { return a | b; }
uint64_t Xor(uint64_t a, uint64_t b, uint64_t, const Instruction&) { return a ^ b; }
uint64_t Not(uint64_t a, uint64_t, uint64_t, const Instruction&) { return ~a; }
uint64_t Cnot(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  return (a & MaskOf(i.type)) == 0;
}

// Amounts of at least the width leave only the sign.
uint64_t ShiftLeft(uint64_t a, uint64_t b, uint64_t, const Instruction& i) {
  const auto amount = static_cast<uint32_t>(b);
  return amount >= 8 * static_cast<uint32_t>(BytesOf(i.type)) ? 0 : a << amount;
}
uint64_t ShiftRight(uint64_t a, uint64_t b, uint64_t, const Instruction& i) {
  const auto amount = static_cast<uint32_t>(b);
  return amount >= 8 * static_cast<uint32_t>(BytesOf(i.type)) ? 0 : (a & MaskOf(i.type)) >> amount;
}
uint64_t ShiftRightSigned(uint64_t a, uint64_t b, uint64_t, const Instruction& i) {
  const int unused = 64 - 8 * BytesOf(i.type);
  const int64_t value = static_cast<int64_t>(a << unused) >> unused;
  return static_cast<uint64_t>(value >> std::min<uint32_t>(static_cast<uint32_t>(b), 63));
}

uint64_t ReverseBits(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  uint64_t reversed = 0;
  for (int bit = 0; bit < 8 * BytesOf(i.type); ++bit) reversed = reversed << 1 | (a >> bit & 1);
  return reversed;
}
uint64_t CountOnes(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  return std::popcount(a & MaskOf(i.type));
}
uint64_t CountLeadingZeros(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  return std::countl_zero(a & MaskOf(i.type)) - (64 - 8 * BytesOf(i.type));
}

uint64_t ExtractField(uint64_t a, uint64_t b, uint64_t c, const Instruction& i) {
  const int highest = 8 * BytesOf(i.type) - 1;
  const int position = static_cast<int>(b & 0xff);
  const int length = static_cast<int>(c & 0xff);
  const bool sign =
      IsSigned(i.type) && length > 0 && (a >> std::min(position + length - 1, highest) & 1) != 0;
  uint64_t field = sign ? ~uint64_t{0} : 0;
  for (int bit = 0; bit <= highest && bit < length && position + bit <= highest; ++bit) {
    const uint64_t one = uint64_t{1} << bit;
    field = (a >> (position + bit) & 1) != 0 ? field | one : field & ~one;
  }
  return field;
}

// f = bfi(a, b, position, length): inserts the low bits of a into b.
void InsertField(Thread& thread, const Instruction& i) {
  const int highest = 8 * BytesOf(i.type) - 1;
  const int position = static_cast<int>(thread.slots[i.c] & 0xff);
  const int length = static_cast<int>(thread.slots[i.d] & 0xff);
  const uint64_t a = thread.slots[i.a];
  uint64_t field = thread.slots[i.b];
  for (int bit = 0; bit < length && position + bit <= highest; ++bit) {
    const uint64_t one = uint64_t{1} << (position + bit);
    field = (a >> bit & 1) != 0 ? field | one : field & ~one;
  }
  thread.slots[i.to] = field;
}

uint64_t FindLeadingBit(uint64_t a, uint64_t, uint64_t, const Instruction& i) {
  const int unused = 64 - 8 * BytesOf(i.type);
  uint64_t value = a & MaskOf(i.type);
  if (IsSigned(i.type) && (value >> (63 - unused) & 1) != 0) value = ~a & MaskOf(i.type);
  if (value == 0) return 0xffffffff;
  const int from_top = std::countl_zero(value) - unused;
  return i.operation != 0 ? from_top : 63 - unused - from_top;
}

// Selects bytes of {b, a} by c's nibbles; a nibble's highest bit replicates the byte's sign.
uint64_t Permute(uint64_t a, uint64_t b, uint64_t c, const Instruction&) {
  const uint64_t bytes = b << 32 | (a & 0xffffffff);
  uint64_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint64_t selector = c >> (4 * i) & 0xf;
    uint64_t byte = bytes >> (8 * (selector & 7)) & 0xff;
    if ((selector & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

template <bool kLeft, bool kClamp>
uint64_t FunnelShift(uint64_t a, uint64_t b, uint64_t c, const Instruction&) {
  const auto wanted = static_cast<uint32_t>(c);
  const uint32_t amount = kClamp ? std::min<uint32_t>(wanted, 32) : wanted & 31;
  const uint64_t both = b << 32 | (a & 0xffffffff);
  return kLeft ? both << amount >> 32 : both >> amount;
}

void LookUpTable(Thread& thread, const Instruction& i) {
  const auto a = static_cast<uint32_t>(thread.slots[i.a]);
  const auto b = static_cast<uint32_t>(thread.slots[i.b]);
  const auto c = static_cast<uint32_t>(thread.slots[i.c]);
  const uint64_t table = thread.slots[i.d];
  uint32_t result = 0;
  for (int row = 0; row < 8; ++row) {
    if ((table >> row & 1) == 0) continue;
    result |= ((row & 4) != 0 ? a : ~a) & ((row & 2) != 0 ? b : ~b) & ((row & 1) != 0 ? c : ~c);
  }
  thread.slots[i.to] = result;
}

void DecodeLogic(StatementDecoder& decoder, Instruction::Execute execute, bool unary) {
  Instruction& i = decoder.instruction;
  i.execute = execute;
  if (!decoder.Expect(unary ? 2 : 3, unary ? 2 : 3)) return;
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  if (!unary) i.b = decoder.Read(2, i.type);
}

// The result, or an amount, has 32 bits for every type.
void DecodeCount(StatementDecoder& decoder, Instruction::Execute execute) {
  Instruction& i = decoder.instruction;
  i.execute = execute;
  if (!decoder.Expect(2, 2)) return;
  i.to = decoder.Write(0, Type::kU32);
  i.a = decoder.Read(1, i.type);
}

void DecodeThree(StatementDecoder& decoder, Instruction::Execute execute, Type b, Type c) {
  Instruction& i = decoder.instruction;
  i.execute = execute;
  if (!decoder.Expect(4, 4)) return;
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  i.b = decoder.Read(2, b);
  i.c = decoder.Read(3, c);
}

void DecodeFour(StatementDecoder& decoder, Instruction::Execute execute) {
  Instruction& i = decoder.instruction;
  i.execute = execute;
  if (!decoder.Expect(5, 5)) return;
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  i.b = decoder.Read(2, i.type);
  i.c = decoder.Read(3, Type::kU32);
  i.d = decoder.Read(4, Type::kU32);
}

void DecodeFunnelShift(StatementDecoder& decoder) {
  const bool left = decoder.Take("l");
  if (!left && !decoder.Take("r")) return decoder.Invalid("neither .l nor .r");
  const bool clamp = decoder.Take("clamp");
  if (!clamp && !decoder.Take("wrap")) return decoder.Invalid("neither .clamp nor .wrap");
  DecodeThree(
      decoder,
      left ? (clamp ? Evaluate<FunnelShift<true, true>> : Evaluate<FunnelShift<true, false>>)
           : (clamp ? Evaluate<FunnelShift<false, true>> : Evaluate<FunnelShift<false, false>>),
      Type::kB32, Type::kU32);
}

void DecodeShift(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool is_signed = IsSigned(i.type);
  i.execute = decoder.head() == "shl" ? Evaluate<ShiftLeft>
              : is_signed             ? Evaluate<ShiftRightSigned>
                                      : Evaluate<ShiftRight>;
  if (!decoder.Expect(3, 3)) return;
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  i.b = decoder.Read(2, Type::kU32);
}

}  // namespace

void DecodeBits(StatementDecoder& decoder) {
  const std::string& head = decoder.head();
  Instruction& i = decoder.instruction;
  if (head == "bfind") i.operation = decoder.Take("shiftamt");
  i.type = decoder.TakeType();
  if (IsFloat(i.type)) return decoder.Invalid("the type");
  if (head == "and") return DecodeLogic(decoder, Evaluate<And>, false);
  if (head == "or") return DecodeLogic(decoder, Evaluate<Or>, false);
  if (head == "xor") return DecodeLogic(decoder, Evaluate<Xor>, false);
  if (head == "not") return DecodeLogic(decoder, Evaluate<Not>, true);
  if (i.type == Type::kPred) return decoder.Invalid("the type");
  if (head == "shl" || head == "shr") return DecodeShift(decoder);
  if (head == "cnot") return DecodeLogic(decoder, Evaluate<Cnot>, true);
  if (BytesOf(i.type) < 4) return decoder.Invalid("the type");
  if (head == "brev") return DecodeLogic(decoder, Evaluate<ReverseBits>, true);
  if (head == "popc") return DecodeCount(decoder, Evaluate<CountOnes>);
  if (head == "clz") return DecodeCount(decoder, Evaluate<CountLeadingZeros>);
  if (head == "bfind") return DecodeCount(decoder, Evaluate<FindLeadingBit>);
  if (head == "bfe") return DecodeThree(decoder, Evaluate<ExtractField>, Type::kU32, Type::kU32);
  if (head == "bfi") return DecodeFour(decoder, InsertField);
  if (BytesOf(i.type) != 4) return decoder.Invalid("the type");
  if (head == "prmt") return DecodeThree(decoder, Evaluate<Permute>, Type::kB32, Type::kB32);
  if (head == "shf") return DecodeFunnelShift(decoder);
  if (head == "lop3") return DecodeFour(decoder, LookUpTable);
  decoder.Refuse("the instruction");
}

}  // namespace kiln::stand_ins::ptx
