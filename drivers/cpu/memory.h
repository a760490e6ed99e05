// Pages for buffers, scratch and code.
#ifndef KILN_DRIVERS_CPU_MEMORY_H_
#define KILN_DRIVERS_CPU_MEMORY_H_

#include <cstdint>

namespace kiln::drivers::cpu {

// Requires: `bytes` > 0. Aligned to kBufferAlignmentMin; large blocks are aligned to huge pages,
// which the kernel is asked to use for them. Null: out of memory.
void* AllocateMemory(int64_t bytes);
void ReleaseMemory(void* memory, int64_t bytes);
// Whether a block of AllocateMemory(bytes) is all zero at first: fresh pages, which the system
// supplies on first access.
bool IsZeroAtFirst(int64_t bytes);

// Reserves address space without memory; pages are supplied on first access. Null: failed.
void* ReserveMemory(int64_t bytes);
void UnmapMemory(void* memory, int64_t bytes);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_MEMORY_H_
