// mov of registers, addresses, special registers and vectors.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

uint64_t Copy(uint64_t a, uint64_t, uint64_t, const Instruction&) { return a; }

// The address of a variable in the frame.
void CopyLocalAddress(Thread& thread, const Instruction& i) {
  thread.slots[i.to] = thread.frame().local + thread.slots[i.a];
}
void CopyParameterAddress(Thread& thread, const Instruction& i) {
  thread.slots[i.to] = thread.frame().parameters + thread.slots[i.a];
}

uint64_t ElementMask(const Instruction& i) {
  return i.bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * i.bytes)) - 1;
}
void UnpackElements(Thread& thread, const Instruction& i) {
  const uint64_t whole = thread.slots[i.a];
  const uint32_t* to = thread.block->program->lists.data() + i.list;
  for (uint32_t e = 0; e < i.list_size; ++e)
    thread.slots[to[e]] = whole >> (8 * i.bytes * e) & ElementMask(i);
}
void PackElements(Thread& thread, const Instruction& i) {
  const uint32_t* from = thread.block->program->lists.data() + i.list;
  uint64_t whole = 0;
  for (uint32_t e = 0; e < i.list_size; ++e)
    whole |= (thread.slots[from[e]] & ElementMask(i)) << (8 * i.bytes * e);
  thread.slots[i.to] = whole;
}

uint64_t ValueOf(SpecialRegister which, const Thread& thread) {
  const Block& block = *thread.block;
  const uint32_t lane = thread.index % 32;
  const uint64_t below = (uint64_t{1} << lane) - 1;
  const uint64_t equal = uint64_t{1} << lane;
  const int index = static_cast<int>(which);
  switch (which) {
    case SpecialRegister::kThreadX:
    case SpecialRegister::kThreadY:
    case SpecialRegister::kThreadZ:
      return thread.position[index - static_cast<int>(SpecialRegister::kThreadX)];
    case SpecialRegister::kBlockX:
    case SpecialRegister::kBlockY:
    case SpecialRegister::kBlockZ:
      return block.position[index - static_cast<int>(SpecialRegister::kBlockX)];
    case SpecialRegister::kThreadsX:
    case SpecialRegister::kThreadsY:
    case SpecialRegister::kThreadsZ:
      return block.shape.block[index - static_cast<int>(SpecialRegister::kThreadsX)];
    case SpecialRegister::kBlocksX:
    case SpecialRegister::kBlocksY:
    case SpecialRegister::kBlocksZ:
      return block.shape.grid[index - static_cast<int>(SpecialRegister::kBlocksX)];
    case SpecialRegister::kLane:
      return lane;
    case SpecialRegister::kWarp:
      return thread.index / 32;
    case SpecialRegister::kWarps:
      return (block.threads.size() + 31) / 32;
    case SpecialRegister::kLaneMaskEqual:
      return equal;
    case SpecialRegister::kLaneMaskLess:
      return below;
    case SpecialRegister::kLaneMaskLessEqual:
      return below | equal;
    case SpecialRegister::kLaneMaskGreater:
      return ~(below | equal) & 0xffffffff;
    case SpecialRegister::kLaneMaskGreaterEqual:
      return ~below & 0xffffffff;
    case SpecialRegister::kSharedBytes:
      return block.entry->shared_bytes + block.shape.dynamic_shared_bytes;
    case SpecialRegister::kDynamicSharedBytes:
      return block.shape.dynamic_shared_bytes;
  }
  return 0;
}

void CopySpecial(Thread& thread, const Instruction& i) {
  thread.slots[i.to] = ValueOf(static_cast<SpecialRegister>(i.operation), thread);
}

// In the order of SpecialRegister.
constexpr absl::string_view kSpecialRegisters[] = {"%tid.x",           "%tid.y",
                                                   "%tid.z",           "%ctaid.x",
                                                   "%ctaid.y",         "%ctaid.z",
                                                   "%ntid.x",          "%ntid.y",
                                                   "%ntid.z",          "%nctaid.x",
                                                   "%nctaid.y",        "%nctaid.z",
                                                   "%laneid",          "%warpid",
                                                   "%nwarpid",         "%lanemask_eq",
                                                   "%lanemask_lt",     "%lanemask_le",
                                                   "%lanemask_gt",     "%lanemask_ge",
                                                   "%total_smem_size", "%dynamic_smem_size"};

void DecodeSpecial(StatementDecoder& decoder, const std::string& name) {
  const auto* found = std::find(std::begin(kSpecialRegisters), std::end(kSpecialRegisters), name);
  if (found == std::end(kSpecialRegisters))
    return decoder.Refuse(absl::StrCat("the special register ", name));
  decoder.instruction.operation = found - std::begin(kSpecialRegisters);
  decoder.instruction.execute = CopySpecial;
}

void DecodeVector(StatementDecoder& decoder, Type type, const Operand& vector, const Operand& whole,
                  bool unpacks) {
  Instruction& i = decoder.instruction;
  const size_t count = vector.elements.size();
  const int bytes = count == 0 ? 0 : BytesOf(type) / static_cast<int>(count);
  if (bytes * static_cast<int>(count) != BytesOf(type) || bytes == 0)
    return decoder.Invalid("the vector does not fit");
  const Type element = bytes == 1   ? Type::kB8
                       : bytes == 2 ? Type::kB16
                       : bytes == 4 ? Type::kB32
                                    : Type::kB64;
  i.bytes = bytes;
  i.execute = unpacks ? UnpackElements : PackElements;
  decoder.StartList();
  for (const Operand& item : vector.elements)
    decoder.AddToList(unpacks ? decoder.Write(item, element) : decoder.Read(item, element));
  (unpacks ? i.a : i.to) = unpacks ? decoder.Read(whole, type) : decoder.Write(whole, type);
}

void DecodeAddress(StatementDecoder& decoder, const Names::Place& place, const Operand& from) {
  Instruction& i = decoder.instruction;
  i.a = decoder.Constant(place.address + from.offset);
  i.execute = place.space == Space::kLocal   ? CopyLocalAddress
              : place.space == Space::kParam ? CopyParameterAddress
                                             : Evaluate<Copy>;
}

}  // namespace

void DecodeMove(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  const Type type = decoder.TakeType();
  if (!decoder.Expect(2, 2)) return;
  const Operand& to = decoder.operand(0);
  const Operand& from = decoder.operand(1);
  if (to.kind == Operand::Kind::kVector) return DecodeVector(decoder, type, to, from, true);
  if (from.kind == Operand::Kind::kVector) return DecodeVector(decoder, type, from, to, false);
  i.to = decoder.Write(to, type);
  if (from.kind != Operand::Kind::kName || decoder.IsRegister(from)) {
    i.execute = Evaluate<Copy>;
    i.a = decoder.Read(from, type);
  } else if (const Names::Place* place = decoder.FindVariable(from)) {
    DecodeAddress(decoder, *place, from);
  } else if (absl::StartsWith(from.name, "%")) {
    DecodeSpecial(decoder, from.name);
  } else {
    decoder.Refuse(absl::StrCat("the value of ", from.name));
  }
}

}  // namespace kiln::stand_ins::ptx
