// Names for people: "sum_128x32_800", "elementwise_4096", "rows_512_max_sum_4096".
#ifndef KILN_COMPILER_KERNEL_KERNEL_NAME_H_
#define KILN_COMPILER_KERNEL_KERNEL_NAME_H_

#include <string>

#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Returns a name made from what the kernel computes and its sizes; equal kernels have equal names.
// A C identifier.
std::string KernelName(const Kernel& kernel);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_KERNEL_NAME_H_
