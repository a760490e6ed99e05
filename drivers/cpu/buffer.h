// Host memory as a device's buffer.
#ifndef KILN_DRIVERS_CPU_BUFFER_H_
#define KILN_DRIVERS_CPU_BUFFER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/common/caching_allocator.h"
#include "drivers/interface/buffer.h"
#include "proto/check/check.h"

namespace kiln::drivers::cpu {

class CpuBuffer : public Buffer {
 public:
  // Takes ownership of `memory`, which `allocator` allocated for `bytes`. The allocator is shared,
  // since buffers may outlive their device.
  CpuBuffer(std::shared_ptr<CachingAllocator> allocator, void* memory, int64_t bytes,
            Contents contents)
      : allocator_(std::move(allocator)), memory_(memory), bytes_(bytes), contents_(contents) {
    KILN_CHECK(memory_ != nullptr) << bytes_ << " bytes";
  }
  ~CpuBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  void* host_pointer() const override { return memory_; }
  Contents contents() const override { return contents_; }

 private:
  std::shared_ptr<CachingAllocator> allocator_;
  void* memory_;
  int64_t bytes_;
  Contents contents_;
};

}  // namespace kiln::drivers::cpu

#endif  // KILN_DRIVERS_CPU_BUFFER_H_
