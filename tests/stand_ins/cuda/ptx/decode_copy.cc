// cp.async: copies from device memory to shared memory that complete only at a wait, so that a
// missing wait shows.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

void StartCopy(Thread& thread, const Instruction& i) {
  uint64_t to = thread.slots[i.a] + static_cast<uint64_t>(i.offset);
  if (i.from == Type::kU32) to &= 0xffffffff;
  const uint64_t from = thread.slots[i.b] + thread.slots[i.d];
  const auto source_bytes =
      static_cast<int64_t>(std::min<uint64_t>(thread.slots[i.c] & 0xffffffff, i.bytes));
  SharedMemory& shared = thread.block->shared;
  if (!IsAligned(thread, i, to, i.bytes) || !IsAligned(thread, i, from, i.bytes)) return;
  if (to > static_cast<uint64_t>(shared.bytes()) ||
      shared.bytes() - static_cast<int64_t>(to) < i.bytes) {
    return thread.Fail(i, FaultKind::kIllegalAddress,
                       absl::StrCat(i.bytes, " bytes at ", to, " are outside the ", shared.bytes(),
                                    " bytes of shared memory"));
  }
  if (thread.block->options.find_races) {
    const std::string conflict = shared.BeginCopy(to, i.bytes, thread.index);
    if (!conflict.empty()) return thread.Fail(i, FaultKind::kUndefined, conflict);
  }
  thread.copies.push_back(
      {static_cast<int64_t>(to), from, i.bytes, source_bytes, thread.copy_group, &i});
}

void CommitGroup(Thread& thread, const Instruction&) { ++thread.copy_group; }
void WaitForGroups(Thread& thread, const Instruction& i) { EndCopies(thread, i.offset); }
void WaitForAll(Thread& thread, const Instruction&) {
  ++thread.copy_group;
  EndCopies(thread, 0);
}

void DecodeStart(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  decoder.TakeMemoryModifiers();
  const bool to_shared = decoder.Take("shared") || decoder.Take("shared::cta");
  if (!to_shared || !decoder.Take("global")) return decoder.Refuse("the state spaces");
  if (!decoder.Expect(3, 4)) return;
  i.execute = StartCopy;
  // The source first, because its address is stored in b and d.
  decoder.ReadAddress(1, Space::kGlobal);
  i.b = i.a;
  i.d = decoder.Constant(static_cast<uint64_t>(i.offset));
  i.from = Type::kB32;
  decoder.ReadAddress(0, Space::kShared);
  const Operand& bytes = decoder.operand(2);
  if (bytes.kind != Operand::Kind::kInteger ||
      (bytes.bits != 4 && bytes.bits != 8 && bytes.bits != 16))
    return decoder.Invalid("4, 8 or 16 bytes");
  i.bytes = bytes.bits;
  i.c = decoder.operands() > 3 ? decoder.Read(3, Type::kU32) : decoder.Constant(bytes.bits);
}

}  // namespace

void DecodeAsynchronousCopy(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  if (!decoder.Take("async")) return decoder.Refuse("the instruction");
  if (decoder.Take("commit_group")) {
    i.execute = CommitGroup;
  } else if (decoder.Take("wait_all")) {
    i.execute = WaitForAll;
  } else if (decoder.Take("wait_group")) {
    if (!decoder.Expect(1, 1) || decoder.operand(0).kind != Operand::Kind::kInteger)
      return decoder.Invalid("the number of groups");
    i.offset = static_cast<int64_t>(decoder.operand(0).bits);
    i.execute = WaitForGroups;
  } else {
    DecodeStart(decoder);
  }
}

}  // namespace kiln::stand_ins::ptx
