// Host memory as a device's buffer.
#ifndef KILN_DRIVERS_NULL_BUFFER_H_
#define KILN_DRIVERS_NULL_BUFFER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "drivers/common/caching_allocator.h"
#include "drivers/interface/buffer.h"
#include "proto/check/check.h"

namespace kiln::drivers::null {

class NullBuffer : public Buffer {
 public:
  // Takes ownership of `memory`, which `allocator` allocated for `bytes`. `lost` becomes true when
  // the device is revived after a loss.
  NullBuffer(std::shared_ptr<CachingAllocator> allocator,
             std::shared_ptr<const std::atomic<bool>> lost, void* memory, int64_t bytes)
      : allocator_(std::move(allocator)), lost_(std::move(lost)), memory_(memory), bytes_(bytes) {
    KILN_CHECK(memory_ != nullptr) << bytes_ << " bytes";
  }
  ~NullBuffer() override { allocator_->Free(memory_, bytes_); }

  int64_t bytes() const override { return bytes_; }
  void* host_pointer() const override { return memory_; }
  bool lost() const { return *lost_; }

 private:
  std::shared_ptr<CachingAllocator> allocator_;
  std::shared_ptr<const std::atomic<bool>> lost_;
  void* memory_;
  int64_t bytes_;
};

}  // namespace kiln::drivers::null

#endif  // KILN_DRIVERS_NULL_BUFFER_H_
