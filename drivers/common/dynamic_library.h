// A vendor's library, opened at run time, so that one binary starts anywhere.
#ifndef KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_
#define KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace kiln::drivers {

// Thread-safe. What was opened once stays in the process until its end, since vendors' libraries
// leave threads and callbacks behind; all the same, functions taken from it must not be called
// after it was destroyed.
class DynamicLibrary {
 public:
  // By soname ("libcuda.so.1") or path. NOT_FOUND says what the dynamic linker said.
  static absl::StatusOr<std::unique_ptr<DynamicLibrary>> Open(const std::string& name);
  ~DynamicLibrary();
  DynamicLibrary(const DynamicLibrary&) = delete;
  DynamicLibrary& operator=(const DynamicLibrary&) = delete;

  // Sets *function, a pointer to function, to the symbol. NOT_FOUND names the symbol and the
  // library.
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
