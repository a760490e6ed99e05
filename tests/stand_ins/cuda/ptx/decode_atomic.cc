// atom and red. Launches on other streams may run concurrently, so the host's atomics are used.
#include <bit>
#include <cmath>

#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class AtomicOp : uint8_t {
  kAdd,
  kMin,
  kMax,
  kAnd,
  kOr,
  kXor,
  kExchange,
  kInc,
  kDec,
  kCompare
};

uint64_t AddFloats(Type type, uint64_t old, uint64_t operand) {
  switch (type) {
    case Type::kF32: {
      const float sum = std::bit_cast<float>(static_cast<uint32_t>(old)) +
                        std::bit_cast<float>(static_cast<uint32_t>(operand));
      return std::isnan(sum) ? CanonicalNan(type) : std::bit_cast<uint32_t>(sum);
    }
    case Type::kF64:
      return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(operand));
    case Type::kF16x2:
    case Type::kBf16x2: {
      const Type element = ElementOf(type);
      return AddFloats(element, old >> 16 & 0xffff, operand >> 16 & 0xffff) << 16 |
             AddFloats(element, old & 0xffff, operand & 0xffff);
    }
    default:
      return FromDouble(type, AddToOdd(ToDouble(type, old), ToDouble(type, operand)));
  }
}

bool IsLess(Type type, uint64_t x, uint64_t y) {
  const int unused = 64 - 8 * BytesOf(type);
  if (IsSigned(type)) return static_cast<int64_t>(x << unused) < static_cast<int64_t>(y << unused);
  return x << unused < y << unused;
}

uint64_t Updated(const Instruction& i, uint64_t old, uint64_t operand, uint64_t other) {
  switch (static_cast<AtomicOp>(i.operation)) {
    case AtomicOp::kAdd:
      return IsFloat(i.type) ? AddFloats(i.type, old, operand) : old + operand;
    case AtomicOp::kMin:
      return IsLess(i.type, operand, old) ? operand : old;
    case AtomicOp::kMax:
      return IsLess(i.type, old, operand) ? operand : old;
    case AtomicOp::kAnd:
      return old & operand;
    case AtomicOp::kOr:
      return old | operand;
    case AtomicOp::kXor:
      return old ^ operand;
    case AtomicOp::kExchange:
      return operand;
    case AtomicOp::kInc:
      return old >= operand ? 0 : old + 1;
    case AtomicOp::kDec:
      return old == 0 || old > operand ? operand : old - 1;
    case AtomicOp::kCompare:
      return old == operand ? other : old;
  }
  return old;
}

template <typename T>
void UpdateMemory(Thread& thread, const Instruction& i) {
  const uint64_t address = thread.slots[i.a] + static_cast<uint64_t>(i.offset);
  if (!IsAligned(thread, i, address, sizeof(T))) return;
  uint8_t* place = Locate(thread, i, i.space, address, sizeof(T), AccessKind::kUpdate);
  if (place == nullptr) return;
  T* memory = reinterpret_cast<T*>(place);
  const auto operand = static_cast<T>(thread.slots[i.b]);
  const auto other = static_cast<T>(thread.slots[i.c]);
  T old = __atomic_load_n(memory, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(memory, &old, static_cast<T>(Updated(i, old, operand, other)),
                                      false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  thread.slots[i.to] = Extend(old);
}

bool TypeFits(AtomicOp op, Type type) {
  const bool bits = !IsFloat(type) && !IsSigned(type) && !IsPacked(type);
  switch (op) {
    case AtomicOp::kAdd:
      return IsFloat(type) ? type != Type::kF32x2 && type != Type::kTf32
                           : BytesOf(type) >= 4 && !IsPacked(type) && type != Type::kB32 &&
                                 type != Type::kB64;
    case AtomicOp::kMin:
    case AtomicOp::kMax:
      return !IsFloat(type) && !IsPacked(type) && BytesOf(type) >= 4;
    case AtomicOp::kCompare:
      return bits && BytesOf(type) >= 2;
    default:
      return bits && BytesOf(type) >= 4;
  }
}

}  // namespace

void DecodeAtomic(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool returns = decoder.head() == "atom";
  decoder.TakeMemoryModifiers();
  const int op =
      decoder.TakeOneOf({"add", "min", "max", "and", "or", "xor", "exch", "inc", "dec", "cas"}, 10);
  decoder.Take("noftz");
  const Space space = decoder.TakeSpace();
  i.type = decoder.TakeType();
  if (op == 10 || !TypeFits(static_cast<AtomicOp>(op), i.type))
    return decoder.Refuse("the operation or its type");
  if (space == Space::kLocal || space == Space::kParam || space == Space::kConst)
    return decoder.Invalid("the state space");
  i.operation = op;
  i.execute = BytesOf(i.type) == 2   ? UpdateMemory<uint16_t>
              : BytesOf(i.type) == 4 ? UpdateMemory<uint32_t>
                                     : UpdateMemory<uint64_t>;
  const bool compares = static_cast<AtomicOp>(op) == AtomicOp::kCompare;
  const size_t address = returns ? 1 : 0;
  if (!decoder.Expect(address + (compares ? 3 : 2), address + (compares ? 3 : 2))) return;
  if (returns) i.to = decoder.Write(0, i.type);
  decoder.ReadAddress(address, space);
  i.b = decoder.Read(address + 1, i.type);
  if (compares) i.c = decoder.Read(address + 2, i.type);
}

}  // namespace kiln::stand_ins::ptx
