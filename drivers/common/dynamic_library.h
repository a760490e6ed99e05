// A vendor's library, opened at run time, so that the binary also starts where it is not installed.
#ifndef KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_
#define KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

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

// The base of a vendor's functions: `decltype(&cuInit) Init = Find("cuInit")` is a member.
class FunctionTable {
 public:
  explicit FunctionTable(std::unique_ptr<DynamicLibrary> library) : library_(std::move(library)) {}
  // NOT_FOUND: names the first function that the library lacks.
  const absl::Status& status() const { return status_; }

 protected:
  struct Symbol {
    FunctionTable& table;
    const char* name;
    template <typename Function>
    operator Function*() const {  // NOLINT(google-explicit-constructor)
      Function* function = nullptr;
      if (table.status_.ok()) table.status_ = table.library_->Find(name, &function);
      return function;
    }
  };
  Symbol Find(const char* name) { return {*this, name}; }

 private:
  const std::unique_ptr<DynamicLibrary> library_;
  absl::Status status_;
};

// Opens a library as a Table, a FunctionTable. `what` and `remedy` are for people: NOT_FOUND says
// "NVIDIA's driver is not installed (…); install …".
template <typename Table>
absl::StatusOr<std::shared_ptr<Table>> OpenTable(const std::string& name, absl::string_view what,
                                                 absl::string_view remedy) {
  auto library = DynamicLibrary::Open(name);
  const auto missing = [&](absl::string_view is, const absl::Status& why) {
    return absl::NotFoundError(absl::StrCat(what, " is ", is, " (", why.message(), "); ", remedy));
  };
  if (!library.ok()) return missing("not installed", library.status());
  auto table = std::make_shared<Table>(*std::move(library));
  if (!table->status().ok()) return missing("too old", table->status());
  return table;
}

}  // namespace kiln::drivers

#endif  // KILN_DRIVERS_COMMON_DYNAMIC_LIBRARY_H_
