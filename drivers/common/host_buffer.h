// Host memory that several devices copy through.
#ifndef KILN_DRIVERS_COMMON_HOST_BUFFER_H_
#define KILN_DRIVERS_COMMON_HOST_BUFFER_H_

#include <cstdint>
#include <memory>

#include "drivers/interface/buffer.h"

namespace kiln::drivers {

// Belongs to no device. Used in slots that the list declares as host memory
// (CommandList::host_slots).
class HostBuffer : public Buffer {
 public:
  // Zeroed memory aligned to kBufferAlignmentMin. Null: out of memory.
  static std::unique_ptr<HostBuffer> Make(int64_t bytes);
  ~HostBuffer() override;

  int64_t bytes() const override { return bytes_; }
  void* host_pointer() const override { return memory_; }

 private:
  HostBuffer(void* memory, int64_t bytes) : memory_(memory), bytes_(bytes) {}

  void* const memory_;
  const int64_t bytes_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_HOST_BUFFER_H_
