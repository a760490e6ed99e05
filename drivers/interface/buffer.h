// A range of a device's memory.
#ifndef KILN_DRIVERS_INTERFACE_BUFFER_H_
#define KILN_DRIVERS_INTERFACE_BUFFER_H_

#include <cstdint>

namespace kiln::drivers {

// Owned by the caller of Allocate; the destructor frees the memory.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual int64_t bytes() const = 0;
  // The address if the host can read and write the memory directly (CPU devices), else null.
  virtual void* host_pointer() const { return nullptr; }
  // The content of host-visible memory when the buffer is handed out.
  enum class Contents {
    kLeft,     // left by the previous buffer at this address
    kUnknown,  // any data of this process
    kZero,     // fresh zero pages from the system, never written
  };
  virtual Contents contents() const { return Contents::kLeft; }
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_BUFFER_H_
