// A GPU's memory as a device's buffer.
#ifndef KILN_DRIVERS_CUDA_BUFFER_H_
#define KILN_DRIVERS_CUDA_BUFFER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/common/caching_allocator.h"
#include "drivers/cuda/context.h"
#include "drivers/interface/buffer.h"

namespace kiln::drivers::cuda {

class CudaBuffer : public Buffer {
 public:
  // Takes ownership of `memory` of `context`, which `allocator` allocated for `bytes`. Both are
  // shared, since buffers may outlive their device.
  CudaBuffer(std::shared_ptr<CachingAllocator> allocator, const Context* context, void* memory,
             int64_t bytes)
      : allocator_(std::move(allocator)), context_(context), memory_(memory), bytes_(bytes) {}
  ~CudaBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(memory_); }
  // The context that the memory belongs to; only for comparison.
  const Context* context() const { return context_; }

 private:
  std::shared_ptr<CachingAllocator> allocator_;
  const Context* context_;
  void* memory_;
  int64_t bytes_;
};

}  // namespace kiln::drivers::cuda

#endif  // KILN_DRIVERS_CUDA_BUFFER_H_
