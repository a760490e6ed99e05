// A piece of a device's memory.
#ifndef KILN_DRIVERS_INTERFACE_BUFFER_H_
#define KILN_DRIVERS_INTERFACE_BUFFER_H_

#include <cstdint>

namespace kiln::drivers {

// Owned by whoever allocated it; gives its memory back when destroyed.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual int64_t bytes() const = 0;
  // The address, if the host may read and write it directly (CPU devices), else null.
  virtual void* host_pointer() const { return nullptr; }
  // What is in memory that the host sees when the buffer is handed out.
  enum class Contents {
    kLeft,     // what the buffer that had this address before left there
    kUnknown,  // anything that this process had there
    kZero,     // the system's fresh pages, which nobody has touched
  };
  virtual Contents contents() const { return Contents::kLeft; }
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_INTERFACE_BUFFER_H_
