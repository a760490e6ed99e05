// A vendor's library, opened at run time, so that the binary also starts where it is not installed.
#ifndef KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_
#define KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::drivers {

// Thread-safe. An opened library stays in the process until it exits, since vendors' libraries
// leave threads and callbacks behind. Functions taken from it must still not be called after this
// object was destroyed.
class DynamicLibrary {
 public:
  // Opens by soname ("libcuda.so.1") or path. NOT_FOUND contains the dynamic linker's message.
  static absl::StatusOr<std::unique_ptr<DynamicLibrary>> Open(const std::string& name);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  // Sets *function, a function pointer, to the symbol. NOT_FOUND names the symbol and the library.
  template <typename Function>
  absl::Status Find(const std::string& symbol, Function** function) const {
    absl::StatusOr<void*> address = Address(symbol);
    if (address.ok()) *function = reinterpret_cast<Function*>(*address);
    return address.status();
  }

 private:
  DynamicLibrary(std::string name, void* handle);
  absl::StatusOr<void*> Address(const std::string& symbol) const;

  std::string name_;
  void* handle_;
};

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_
