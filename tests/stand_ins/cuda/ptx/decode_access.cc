// ld and st, and instructions that only hint or order.
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

uint64_t AddressOf(const Thread& thread, const Instruction& i) {
  uint64_t base = thread.slots[i.a];
  if (i.from == Type::kU32) base &= 0xffffffff;  // a 32-bit register
  if (i.frame_relative)
    base += i.space == Space::kLocal ? thread.frame().local : thread.frame().parameters;
  return base + static_cast<uint64_t>(i.offset);
}

uint8_t* LocateAligned(Thread& thread, const Instruction& i, int64_t bytes, AccessKind kind) {
  const uint64_t address = AddressOf(thread, i);
  if (!IsAligned(thread, i, address, bytes)) return nullptr;
  return Locate(thread, i, i.space, address, bytes, kind);
}

template <typename T>
void Load(Thread& thread, const Instruction& i) {
  const uint8_t* from = LocateAligned(thread, i, sizeof(T), AccessKind::kRead);
  if (from == nullptr) return;
  T value;
  std::memcpy(&value, from, sizeof(T));
  thread.slots[i.to] = Extend(value);
}
template <typename T>
void LoadVector(Thread& thread, const Instruction& i) {
  const uint8_t* from = LocateAligned(thread, i, sizeof(T) * i.list_size, AccessKind::kRead);
  if (from == nullptr) return;
  const uint32_t* to = thread.block->program->lists.data() + i.list;
  for (uint32_t e = 0; e < i.list_size; ++e) {
    T value;
    std::memcpy(&value, from + e * sizeof(T), sizeof(T));
    thread.slots[to[e]] = Extend(value);
  }
}
template <typename T>
void Store(Thread& thread, const Instruction& i) {
  uint8_t* to = LocateAligned(thread, i, sizeof(T), AccessKind::kWrite);
  if (to == nullptr) return;
  const auto value = static_cast<T>(thread.slots[i.b]);
  std::memcpy(to, &value, sizeof(T));
}
template <typename T>
void StoreVector(Thread& thread, const Instruction& i) {
  uint8_t* to = LocateAligned(thread, i, sizeof(T) * i.list_size, AccessKind::kWrite);
  if (to == nullptr) return;
  const uint32_t* from = thread.block->program->lists.data() + i.list;
  for (uint32_t e = 0; e < i.list_size; ++e) {
    const auto value = static_cast<T>(thread.slots[from[e]]);
    std::memcpy(to + e * sizeof(T), &value, sizeof(T));
  }
}

template <typename T>
Instruction::Execute ExecuteAccess(bool loads, bool vector) {
  if (loads) return vector ? LoadVector<T> : Load<T>;
  return vector ? StoreVector<T> : Store<T>;
}

Instruction::Execute ExecuteAccessOf(Type type, bool loads, bool vector) {
  if (IsSigned(type) && loads) {
    switch (BytesOf(type)) {
      case 1:
        return ExecuteAccess<int8_t>(loads, vector);
      case 2:
        return ExecuteAccess<int16_t>(loads, vector);
      case 4:
        return ExecuteAccess<int32_t>(loads, vector);
      default:
        return ExecuteAccess<int64_t>(loads, vector);
    }
  }
  switch (BytesOf(type)) {
    case 1:
      return ExecuteAccess<uint8_t>(loads, vector);
    case 2:
      return ExecuteAccess<uint16_t>(loads, vector);
    case 4:
      return ExecuteAccess<uint32_t>(loads, vector);
    default:
      return ExecuteAccess<uint64_t>(loads, vector);
  }
}

void Nothing(Thread&, const Instruction&) {}

}  // namespace

void DecodeAccess(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const bool loads = decoder.head() != "st";
  decoder.TakeMemoryModifiers();
  const Space space = decoder.TakeSpace();
  constexpr size_t kElements[] = {2, 4, 8, 1};
  const int width = decoder.TakeOneOf({"v2", "v4", "v8"}, 3);
  const Type type = decoder.TakeType();
  if (type == Type::kPred) return decoder.Invalid("a predicate in memory");
  if (!decoder.Expect(2, 2)) return;
  if (!loads && space == Space::kConst) return decoder.Invalid("constants are not written");
  decoder.ReadAddress(loads ? 1 : 0, space);
  const Operand& value = decoder.operand(loads ? 0 : 1);
  const bool vector = value.kind == Operand::Kind::kVector;
  if ((vector ? value.elements.size() : 1) != kElements[width])
    return decoder.Invalid("the vector does not fit");
  constexpr int kWideSince = 100;  // sm_100
  if (BytesOf(type) * static_cast<int>(kElements[width]) > 16 &&
      decoder.architecture() < kWideSince)
    return decoder.Invalid("more than 16 bytes");
  i.execute = ExecuteAccessOf(type, loads, vector);
  const auto use = [&](const Operand& element) {
    return loads ? decoder.Write(element, type, true) : decoder.Read(element, type, true);
  };
  if (!vector) {
    (loads ? i.to : i.b) = use(value);
    return;
  }
  decoder.StartList();
  for (const Operand& element : value.elements) decoder.AddToList(use(element));
}

// Nothing to do: threads run one after another, and each sees all earlier writes.
void DecodeHint(StatementDecoder& decoder) {
  decoder.instruction.execute = Nothing;
  decoder.TakeMemoryModifiers();
  decoder.TakeSpace();
  for (absl::string_view modifier : {"L1", "L2", "gl", "u32", "proxy", "async", "alias"})
    decoder.Take(modifier);
}

}  // namespace kiln::stand_ins::ptx
