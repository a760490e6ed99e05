#include "drivers/cpu/memory.h"

#include <sys/mman.h>

#include <cstdlib>

#include "drivers/interface/target.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {
namespace {

constexpr int64_t kHugePage = 2 << 20;

void* Map(int64_t bytes, int flags) {
  void* memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

void* AllocateMemory(int64_t bytes) {
  KILN_CHECK_GT(bytes, 0);
  if (bytes < kHugePage)
    // aligned_alloc requires a size that is a multiple of the alignment.
    return std::aligned_alloc(kBufferAlignmentMin, (bytes + kBufferAlignmentMin - 1) /
                                                       kBufferAlignmentMin * kBufferAlignmentMin);
  // One huge page more than needed; the unaligned ends are unmapped.
  const int64_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  char* mapped = static_cast<char*>(Map(size + kHugePage, 0));
  if (mapped == nullptr) return nullptr;
  const int64_t before = -reinterpret_cast<intptr_t>(mapped) & (kHugePage - 1);
  KILN_CHECK_EQ((reinterpret_cast<intptr_t>(mapped) + before) % kHugePage, 0);
  if (before > 0) munmap(mapped, before);
  if (before < kHugePage) munmap(mapped + before + size, kHugePage - before);
  // One TLB entry then covers 2 MiB. If huge pages are disabled this fails, which only costs time.
  madvise(mapped + before, size, MADV_HUGEPAGE);
  return mapped + before;
}

void ReleaseMemory(void* memory, int64_t bytes) {
  if (bytes < kHugePage) return std::free(memory);
  munmap(memory, (bytes + kHugePage - 1) / kHugePage * kHugePage);
}

bool IsZeroAtFirst(int64_t bytes) { return bytes >= kHugePage; }

// With MAP_NORESERVE Linux does not check that there is memory for all of it; see overcommit_memory
// in proc(5).
void* ReserveMemory(int64_t bytes) { return Map(bytes, MAP_NORESERVE); }

void UnmapMemory(void* memory, int64_t bytes) { munmap(memory, bytes); }

}  // namespace kiln::drivers::cpu
