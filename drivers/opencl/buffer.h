// Shared virtual memory as a device's buffer.
#ifndef KILN_DRIVERS_OPENCL_BUFFER_H_
#define KILN_DRIVERS_OPENCL_BUFFER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/common/caching_allocator.h"
#include "drivers/interface/buffer.h"
#include "drivers/opencl/context.h"

namespace kiln::drivers::opencl {

class OpenClBuffer : public Buffer {
 public:
  // Takes ownership of `memory` of `context`, which `allocator` allocated for `bytes`. Both are
  // shared, since buffers may outlive their device.
  OpenClBuffer(std::shared_ptr<CachingAllocator> allocator, const Context* context, void* memory,
               int64_t bytes)
      : allocator_(std::move(allocator)), context_(context), memory_(memory), bytes_(bytes) {}
  ~OpenClBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  // The host must not access it, so host_pointer() stays null: OpenCL moves coarse-grained memory
  // between host and device only on request.
  char* memory() const { return static_cast<char*>(memory_); }
  // The context that the memory belongs to; only for comparison.
  const Context* context() const { return context_; }

 private:
  std::shared_ptr<CachingAllocator> allocator_;
  const Context* context_;
  void* memory_;
  int64_t bytes_;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_BUFFER_H_
