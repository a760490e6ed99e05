// The buffers of a kernel that computes error bounds in addition to its values.
#ifndef KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_
#define KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_

#include <cstddef>
#include <vector>

#include "compiler/kernel/kernel.h"

namespace kiln::full_size {

// The kernel's globals with their numbers, then a float64 buffer for each written global, then its
// locals, then a float64 buffer for each local. By number in the kernel; -1: no bounds.
struct BoundBuffers {
  std::vector<kernel::Buffer> buffers;
  std::vector<int> value_of;
  std::vector<int> bound_of;
  size_t globals = 0;  // number of globals of the kernel
};
BoundBuffers AddBounds(const kernel::Kernel& kernel);

}  // namespace kiln::full_size

#endif  // KILN_TESTS_FULL_SIZE_BOUND_BUFFERS_H_
