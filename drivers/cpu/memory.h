// Pages for buffers, scratch and code.
#ifndef KILN_DRIVERS_CPU_MEMORY_H_
#define KILN_DRIVERS_CPU_MEMORY_H_

#include <cstdint>

namespace kiln::drivers::cpu {

// Aligned to kBufferAlignmentMin; large blocks to huge pages, which the kernel is asked to use for
// them. Null if there is none.
void* AllocateMemory(int64_t bytes);
void ReleaseMemory(void* memory, int64_t bytes);
// Whether a block of AllocateMemory(bytes) is all zero: pages that nobody has touched, of which the
// system makes one when it is touched first.
bool IsZeroAtFirst(int64_t bytes);

// Address space without memory: pages come when they are touched. Null if there is none.
void* ReserveMemory(int64_t bytes);
void UnmapMemory(void* memory, int64_t bytes);

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_MEMORY_H_
