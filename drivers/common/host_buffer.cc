#include "drivers/common/host_buffer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "drivers/interface/target.h"
#include "proto/check/check.h"

namespace kiln::drivers {

std::unique_ptr<HostBuffer> HostBuffer::Make(int64_t bytes) {
  KILN_CHECK_GE(bytes, 0);
  // aligned_alloc requires a multiple of the alignment.
  const int64_t units = std::max<int64_t>(bytes / kBufferAlignmentMin + 1, 1);
  const auto size = static_cast<size_t>(units * kBufferAlignmentMin);
  void* memory = std::aligned_alloc(kBufferAlignmentMin, size);
  if (memory == nullptr) return nullptr;
  std::memset(memory, 0, size);
  return std::unique_ptr<HostBuffer>(new HostBuffer(memory, bytes));
}

HostBuffer::~HostBuffer() { std::free(memory_); }

}  // namespace kiln::drivers
