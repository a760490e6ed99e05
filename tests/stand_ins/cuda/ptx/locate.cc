// Resolves addresses to bytes.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/machine.h"
#include "tests/stand_ins/cuda/ptx/touched.h"

namespace kiln::stand_ins::ptx {
namespace {

// The most ranges of one instruction in one block. One load may read from several buffers, if the
// compiler selects between their addresses; strided accesses have more ranges than are worth
// distinguishing.
constexpr size_t kRangesMax = 64;

uint8_t* OutOfBounds(Thread& thread, const Instruction& at, absl::string_view what, int64_t bytes,
                     uint64_t offset, int64_t size) {
  thread.Fail(at, FaultKind::kIllegalAddress,
              absl::StrCat(bytes, " bytes at ", static_cast<int64_t>(offset), " are outside the ",
                           size, " bytes of ", what));
  return nullptr;
}

uint8_t* LocateGlobal(Thread& thread, const Instruction& at, uint64_t address, int64_t bytes,
                      AccessKind kind) {
  Site& site = thread.block->sites[at.site];
  const Region* region = site.region;
  if (region == nullptr || address - region->address >= region->bytes) {
    region = thread.block->memory->Find(address);
    if (region != nullptr) site.region = region;
  }
  const uint64_t offset = region == nullptr ? 0 : address - region->address;
  if (region == nullptr || region->bytes - offset < static_cast<uint64_t>(bytes)) {
    thread.Fail(at, FaultKind::kIllegalAddress,
                absl::StrCat(bytes, " bytes at 0x", absl::Hex(address),
                             " are in no allocation: ", thread.block->memory->Describe(address)));
    return nullptr;
  }
  if (!thread.block->options.note_accesses) return region->host + offset;
  if (kind != AccessKind::kWrite) {
    AddRange(site.reads, address, address + bytes, kRangesMax);
  }
  if (kind != AccessKind::kRead) {
    AddRange(site.writes, address, address + bytes, kRangesMax);
  }
  return region->host + offset;
}

uint8_t* LocateShared(Thread& thread, const Instruction& at, uint64_t offset, int64_t bytes,
                      AccessKind kind) {
  Block& block = *thread.block;
  const int64_t size = block.shared.bytes();
  if (offset > static_cast<uint64_t>(size) || size - static_cast<int64_t>(offset) < bytes)
    return OutOfBounds(thread, at, "shared memory", bytes, offset, size);
  if (block.options.find_races) {
    const auto use = kind == AccessKind::kRead    ? SharedMemory::Use::kRead
                     : kind == AccessKind::kWrite ? SharedMemory::Use::kWrite
                                                  : SharedMemory::Use::kAtomic;
    const std::string conflict = block.shared.Note(use, offset, bytes, thread.index);
    if (!conflict.empty()) {
      thread.Fail(at, FaultKind::kUndefined, conflict);
      return nullptr;
    }
  }
  return block.shared.content() + offset;
}

uint8_t* LocateOwn(Thread& thread, const Instruction& at, std::vector<uint8_t>& memory,
                   uint64_t offset, int64_t bytes, absl::string_view what) {
  const int64_t size = memory.size();
  if (offset > static_cast<uint64_t>(size) || size - static_cast<int64_t>(offset) < bytes)
    return OutOfBounds(thread, at, what, bytes, offset, size);
  return memory.data() + offset;
}

Space SpaceOf(uint64_t address) {
  if (address - kSharedWindow < kWindowBytes) return Space::kShared;
  if (address - kLocalWindow < kWindowBytes) return Space::kLocal;
  if (address - kParameterWindow < kWindowBytes) return Space::kParam;
  return Space::kGlobal;
}

}  // namespace

bool IsAligned(Thread& thread, const Instruction& at, uint64_t address, int64_t alignment) {
  if ((address & (alignment - 1)) == 0) return true;
  thread.Fail(at, FaultKind::kMisalignedAddress,
              absl::StrCat("the address 0x", absl::Hex(address), " is no multiple of ", alignment));
  return false;
}

uint8_t* Locate(Thread& thread, const Instruction& at, Space space, uint64_t address, int64_t bytes,
                AccessKind kind) {
  if (space == Space::kGeneric) {
    space = SpaceOf(address);
    if (space != Space::kGlobal) address &= kWindowBytes - 1;
  }
  switch (space) {
    case Space::kShared:
      return LocateShared(thread, at, address, bytes, kind);
    case Space::kLocal:
      return LocateOwn(thread, at, thread.local, address, bytes, "local memory");
    case Space::kParam:
      return LocateOwn(thread, at, thread.parameters, address, bytes, "the parameters");
    default:
      return LocateGlobal(thread, at, address, bytes, kind);
  }
}

void EndCopies(Thread& thread, int64_t groups_that_may_go_on) {
  const int64_t last = thread.copy_group - groups_that_may_go_on;
  SharedMemory& shared = thread.block->shared;
  const auto ended = [&](const AsynchronousCopy& copy) {
    if (copy.group >= last) return false;
    if (thread.state == ThreadState::kFailed) return true;
    const uint8_t* from = nullptr;
    if (copy.source_bytes > 0) {
      from = Locate(thread, *copy.instruction, Space::kGlobal, copy.from, copy.source_bytes,
                    AccessKind::kRead);
      if (from == nullptr) return true;
    }
    uint8_t* to = shared.content() + copy.to;
    std::memset(to, 0, copy.bytes);
    if (from != nullptr) std::memcpy(to, from, copy.source_bytes);
    if (!thread.block->options.find_races) return true;
    const std::string conflict = shared.EndCopy(copy.to, copy.bytes, thread.index);
    if (!conflict.empty()) thread.Fail(*copy.instruction, FaultKind::kUndefined, conflict);
    return true;
  };
  std::erase_if(thread.copies, ended);
}

}  // namespace kiln::stand_ins::ptx
