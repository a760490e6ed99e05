// The buffers of a kernel that computes bounds beside its values.
#ifndef KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_
#define KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_

#include <cstddef>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// The kernel's globals with their numbers, then a float64 buffer for each that is written, then its
// locals, then one for each of them. By number in the kernel; -1: no bounds.
struct BoundBuffers {
  std::vector<kernel::Buffer> buffers;
  std::vector<int> value_of;
  std::vector<int> bound_of;
  size_t globals = 0;  // of the kernel
};
BoundBuffers AddBounds(const kernel::Kernel& kernel);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_
