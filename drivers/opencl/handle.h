// Owns one reference to an OpenCL object.
#ifndef KILN_DRIVERS_OPENCL_HANDLE_H_
#define KILN_DRIVERS_OPENCL_HANDLE_H_

#include <utility>

#include "drivers/opencl/library.h"

namespace kiln::drivers::opencl {

// T is cl_context, cl_event, … The library must outlive it.
template <typename T>
class Handle {
 public:
  using Release = cl_int (*)(T);

  Handle() = default;
  Handle(T value, Release release) : value_(value), release_(release) {}
  Handle(Handle&& other) noexcept { *this = std::move(other); }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(release_, other.release_);
    return *this;
  }
  ~Handle() {
    if (value_ != nullptr) release_(value_);
  }

  T get() const { return value_; }
  explicit operator bool() const { return value_ != nullptr; }

 private:
  T value_ = nullptr;
  Release release_ = nullptr;
};

}  // namespace kiln::drivers::opencl

#endif  // KILN_DRIVERS_OPENCL_HANDLE_H_
