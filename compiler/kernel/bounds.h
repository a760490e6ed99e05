// Proves what makes sharing a device safe: a kernel accesses only its own buffers.
#ifndef KILN_COMPILER_KERNEL_BOUNDS_H_
#define KILN_COMPILER_KERNEL_BOUNDS_H_

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Returns OK if every load and store is in bounds of its buffer where its valid condition holds,
// for all values of the ranges and of loaded indices, and if the points of a scatter that may run
// in parallel write different elements. An INTERNAL error names the first access that is not
// proved.
absl::Status VerifyBounds(const Kernel& kernel, ir::Context& context);

// Checks that every node is legal at the kernel level, and the kernel's form: ranges are distinct
// and used only in their scope, reductions run over exactly the stage's reduce ranges, stores go to
// written buffers with the buffer's dtype, loads read buffers that are read-only or locals that an
// earlier stage wrote. An INTERNAL error says what is wrong.
absl::Status Verify(const Kernel& kernel);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_BOUNDS_H_
