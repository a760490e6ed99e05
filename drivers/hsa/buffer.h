// A GPU's memory as a device's buffer.
#ifndef KILN_DRIVERS_HSA_BUFFER_H_
#define KILN_DRIVERS_HSA_BUFFER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/common/caching_allocator.h"
#include "drivers/hsa/context.h"
#include "drivers/interface/buffer.h"

namespace kiln::drivers::hsa {

class HsaBuffer : public Buffer {
 public:
  // Takes ownership of `memory` of `context`, which `allocator` allocated for `bytes`. Both are
  // shared, since buffers may outlive their device.
  HsaBuffer(std::shared_ptr<CachingAllocator> allocator, std::shared_ptr<const Context> context,
            void* memory, int64_t bytes)
      : allocator_(std::move(allocator)),
        context_(std::move(context)),
        memory_(static_cast<char*>(memory)),
        bytes_(bytes) {}
  ~HsaBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  char* address() const { return memory_; }
  const Context* context() const { return context_.get(); }

 private:
  const std::shared_ptr<CachingAllocator> allocator_;
  const std::shared_ptr<const Context> context_;
  char* const memory_;
  const int64_t bytes_;
};

}  // namespace kiln::drivers::hsa

#endif  // KILN_DRIVERS_HSA_BUFFER_H_
