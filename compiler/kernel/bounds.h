// Proves what makes sharing a device safe: that a kernel touches nothing but its buffers.
#ifndef KILN_COMPILER_KERNEL_BOUNDS_H_
#define KILN_COMPILER_KERNEL_BOUNDS_H_

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// OK if every load and store is in bounds of its buffer wherever its valid condition holds, for all
// values of the ranges and of loaded indices, and a scatter's points that may run in parallel go to
// different elements. INTERNAL names the first access that is not proved.
absl::Status VerifyBounds(const Kernel& kernel, ir::Context& context);

// Every node is legal at the kernel level, and the kernel's form: ranges are distinct and used only
// in their scope, reductions run over exactly the stage's reduce ranges, stores go to written
// buffers with the buffer's dtype, loads read buffers that are read-only or locals that an earlier
// stage wrote. INTERNAL says what is wrong.
absl::Status Verify(const Kernel& kernel);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_BOUNDS_H_
